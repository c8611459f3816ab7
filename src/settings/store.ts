import { desc, eq, gt, lt, lte, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { settingsRevision } from '#db/schema/settings.ts'
import { type Flat, flatten, nest } from './flat.ts'

export type SettingsDatabase = Pick<Database, 'drizzle' | 'listen' | 'notifyOnCommit'>

/** One change. `before` and `after` are what administrators had set, and nothing else. */
export type Revision = {
  /** Rises with each change; there may be gaps. */
  readonly revision: number
  readonly actorId: string
  readonly patch: Flat
  readonly before: Flat
  readonly after: Flat
  readonly createdAt: Date
}

export type NewRevision = Omit<Revision, 'revision'>

export type SettingsStore = ReturnType<typeof createSettingsStore>

/** The messages between processes. */
const channel = 'settings'

/** The table of the changes. What a request waits for fails with `service_unavailable`, soon. */
export function createSettingsStore(
  database: SettingsDatabase,
  { revisionsMax }: { revisionsMax: number },
) {
  const { drizzle } = database
  const ask = createQueryRunner()
  return {
    /** Calls back when any process has changed something, or may have. */
    follow: (onChange: () => void): Promise<void> =>
      database.listen(channel, { onMessage: onChange, onGap: onChange }),

    /** The newest change, if it is newer than this one. Waits as long as it takes. */
    async newerThan(revision: number): Promise<Revision | undefined> {
      const [row] = await drizzle
        .select()
        .from(settingsRevision)
        .where(gt(settingsRevision.revision, revision))
        .orderBy(desc(settingsRevision.revision))
        .limit(1)
      return row === undefined ? undefined : revisionOf(row)
    },

    find: (revision: number): Promise<Revision | undefined> =>
      ask(async () => {
        const [row] = await drizzle
          .select()
          .from(settingsRevision)
          .where(eq(settingsRevision.revision, revision))
        return row === undefined ? undefined : revisionOf(row)
      }),

    /** Newest first. */
    list: (page: { limit: number; before: number | undefined }): Promise<Revision[]> =>
      ask(async () => {
        const { before } = page
        const rows = await drizzle
          .select()
          .from(settingsRevision)
          .where(before === undefined ? undefined : lt(settingsRevision.revision, before))
          .orderBy(desc(settingsRevision.revision))
          .limit(page.limit)
        return rows.map(revisionOf)
      }),

    /**
     * Adds what `make` makes of the newest change, one caller after the other; null changes nothing.
     * What `make` throws is thrown. Gives the newest change after that.
     */
    add: (
      make: (newest: Revision | undefined) => NewRevision | null,
    ): Promise<Revision | undefined> =>
      ask(() =>
        drizzle.transaction(async (transaction) => {
          await transaction.execute(
            sql`select pg_advisory_xact_lock(hashtextextended('settings', 0))`,
          )
          const newestFirst = desc(settingsRevision.revision)
          const [row] = await transaction
            .select()
            .from(settingsRevision)
            .orderBy(newestFirst)
            .limit(1)
          const newest = row === undefined ? undefined : revisionOf(row)
          const made = make(newest)
          if (made === null) return newest
          const [added] = await transaction
            .insert(settingsRevision)
            .values(rowOf(made))
            .returning({ revision: settingsRevision.revision })
          if (added === undefined) throw new Error('the change was not kept')
          const [oldest] = await transaction
            .select({ revision: settingsRevision.revision })
            .from(settingsRevision)
            .orderBy(newestFirst)
            .offset(revisionsMax)
            .limit(1)
          if (oldest !== undefined) {
            await transaction
              .delete(settingsRevision)
              .where(lte(settingsRevision.revision, oldest.revision))
          }
          await database.notifyOnCommit(transaction, channel, String(added.revision))
          return { ...made, ...added }
        }),
      ),
  }
}

type Row = typeof settingsRevision.$inferSelect

function rowOf({ patch, before, after, ...rest }: NewRevision): Omit<Row, 'revision'> {
  return { ...rest, patch: jsonOf(patch), before: jsonOf(before), after: jsonOf(after) }
}

function revisionOf({ patch, before, after, ...rest }: Row): Revision {
  return { ...rest, patch: flatOf(patch), before: flatOf(before), after: flatOf(after) }
}

function jsonOf(values: Flat): string {
  return JSON.stringify(nest(values))
}

function flatOf(json: string): Flat {
  return flatten(JSON.parse(json))
}
