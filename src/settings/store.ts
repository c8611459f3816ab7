import { desc, eq, gt, lt, lte, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { appUser } from '#db/schema/auth.ts'
import { settingsRevision } from '#db/schema/settings.ts'
import { type Flat, flatten, nest } from './patch.ts'

export type SettingsDatabase = Pick<Database, 'drizzle' | 'listen' | 'notifyOnCommit'>

/** One change. `before` and `after` are the overrides of administrators. */
export type Revision = {
  /** Increases with each change, possibly with gaps. */
  readonly revision: number
  readonly actorId: string
  readonly patch: Flat
  readonly before: Flat
  readonly after: Flat
  readonly createdAt: Date
}

/** `actorName`: null if the user was deleted. */
export type ListedRevision = Revision & { readonly actorName: string | null }

/** `before`: the last revision of the previous page. */
export type HistoryPage = { readonly limit: number; readonly before?: number | undefined }

type NewRevision = Omit<Revision, 'revision'>

const notificationChannel = 'settings'
/** A change of the service desk changes many rows. */
const followersMaxMs = 30_000

/** Queries of requests fail with `service_unavailable` after a short timeout. */
export function createSettingsStore(
  database: SettingsDatabase,
  { revisionsMax }: { revisionsMax: number },
) {
  const { drizzle } = database
  const query = createQueryRunner()
  const queryWithFollowers = createQueryRunner(followersMaxMs)
  return {
    /** Calls back when any process may have made a change. */
    follow: (onChange: () => void): Promise<void> =>
      database.listen(notificationChannel, { onMessage: onChange, onGap: onChange }),

    /** The newest change, if it is newer than this one. Has no timeout. */
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
      query(async () => {
        const [row] = await drizzle
          .select()
          .from(settingsRevision)
          .where(eq(settingsRevision.revision, revision))
        return row === undefined ? undefined : revisionOf(row)
      }),

    /** Newest first. */
    list: ({ limit, before }: HistoryPage): Promise<ListedRevision[]> =>
      query(async () => {
        const rows = await drizzle
          .select({
            row: settingsRevision,
            actorName: sql<string | null>`coalesce(${appUser.name}, ${appUser.subject})`,
          })
          .from(settingsRevision)
          .leftJoin(appUser, eq(appUser.id, settingsRevision.actorId))
          .where(before === undefined ? undefined : lt(settingsRevision.revision, before))
          .orderBy(desc(settingsRevision.revision))
          .limit(limit)
        return rows.map(({ row, actorName }) => ({ ...revisionOf(row), actorName }))
      }),

    /**
     * Adds the change that `make` derives from the newest one; null adds none. Serialised by a lock.
     * Returns the newest change, and rethrows if `make` throws.
     */
    add: (
      make: (newest: Revision | undefined, transaction: Transaction) => Promise<NewRevision | null>,
    ): Promise<Revision | undefined> =>
      queryWithFollowers(() =>
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
          const made = await make(newest, transaction)
          if (made === null) return newest
          const [added] = await transaction
            .insert(settingsRevision)
            .values(rowOf(made))
            .returning({ revision: settingsRevision.revision })
          if (added === undefined) throw new Error('settings change was not stored')
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
          await database.notifyOnCommit(transaction, notificationChannel, String(added.revision))
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
