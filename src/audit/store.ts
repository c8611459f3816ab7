import { and, desc, eq, gte, inArray, lt, type SQL, sql } from 'drizzle-orm'
import { insertAuditEntry } from '#db/audit-entries.ts'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { auditEntry } from '#db/schema/audit.ts'
import { appUser } from '#db/schema/auth.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import type { AuditEntry } from './audit.ts'

type AuditDatabase = Pick<Database, 'drizzle'>

/** A transaction, or the database itself. */
type InsertHandle = Pick<Database['drizzle'], 'insert'>

type Row = typeof auditEntry.$inferSelect

export type RecordedEntry = AuditEntry & {
  readonly id: string
  readonly at: Date
  /** Of the actor; null for the system, and for a deleted user. */
  readonly actorName: string | null
}

/** All given conditions must hold. */
export type AuditFilter = {
  readonly actorId?: string | undefined
  /** `group.update`, or `group` for every action that starts with it. */
  readonly action?: string | undefined
  readonly resource?: { readonly type: string; readonly id: string | undefined } | undefined
  /** Included. */
  readonly from?: Date | undefined
  /** Excluded. */
  readonly to?: Date | undefined
}

export type Audit = ReturnType<typeof createAudit>

/** The append-only record of administrative changes. */
export function createAudit({
  database: { drizzle },
  now,
}: {
  database: AuditDatabase
  now: () => Date
}) {
  const query = createQueryRunner()
  return {
    /** With a transaction, the entry is committed if and only if the change is. */
    async record(entry: AuditEntry, transaction?: InsertHandle): Promise<void> {
      const at = now()
      if (transaction === undefined) await query(() => insertAuditEntry(drizzle, entry, at))
      else await insertAuditEntry(transaction, entry, at)
    },

    /** Newest first, after the entry with the id `after`. */
    list: (filter: AuditFilter, { limit, after }: PageRequest): Promise<Page<RecordedEntry>> =>
      query(async () => {
        const isAfter = after === undefined ? undefined : lt(auditEntry.id, after)
        const matches = and(...conditionsOf(filter), isAfter)
        const { action } = filter
        const rows = await drizzle
          .select({ entry: auditEntry, name: appUser.name, subject: appUser.subject })
          .from(auditEntry)
          .leftJoin(appUser, eq(appUser.id, auditEntry.actorId))
          .where(
            action === undefined
              ? matches
              : inArray(auditEntry.id, newestOfActions(action, matches, limit + 1)),
          )
          .orderBy(desc(auditEntry.id))
          .limit(limit + 1)
        return pageOf(
          rows.map(({ entry, name, subject }) => entryOf(entry, name ?? subject)),
          limit,
        )
      }),
  }
}

const rowsPerStatement = 1_000
/** The rest is left to the next sweep. */
const statementsMax = 500
const dayMs = 86_400_000

/** Deletes expired entries. */
export async function sweepAuditLog(
  { drizzle }: AuditDatabase,
  { keepDays, now }: { keepDays: number; now: Date },
): Promise<void> {
  const smallestKept = smallestIdAt(new Date(now.getTime() - keepDays * dayMs))
  const due = drizzle
    .select({ id: auditEntry.id })
    .from(auditEntry)
    .where(lt(auditEntry.id, smallestKept))
    .orderBy(auditEntry.id)
    .limit(rowsPerStatement)
  for (let statements = 0; statements < statementsMax; statements++) {
    const dropped = await drizzle
      .delete(auditEntry)
      .where(inArray(auditEntry.id, due))
      .returning({ id: auditEntry.id })
    if (dropped.length < rowsPerStatement) return
  }
}

/** Ids start with their time, so comparing ids compares ages. */
function smallestIdAt(at: Date): string {
  const time = Math.max(0, at.getTime()).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`
}

/**
 * The ids of the newest entries of each matching action: an action without entries, or with few and old
 * ones, would otherwise read them all. The actions are few, and found by jumps within the index.
 */
function newestOfActions(action: string, matches: SQL | undefined, limit: number): SQL {
  const next = (after: SQL) =>
    sql`(select min(${auditEntry.action}) from ${auditEntry} where ${after})`
  return sql`(
    with recursive known (action) as (
      select ${next(sql`true`)}
      union all
      select ${next(sql`${auditEntry.action} > known.action`)} from known where known.action is not null)
    select newest.id
    from known cross join lateral (
      select ${auditEntry.id} from ${auditEntry}
      where ${and(sql`${auditEntry.action} = known.action`, matches)}
      order by ${auditEntry.id} desc limit ${limit}::integer) newest
    where known.action = ${action} or starts_with(known.action, ${`${action}.`}))`
}

function conditionsOf({ actorId, resource, from, to }: AuditFilter) {
  return [
    actorId === undefined ? undefined : eq(auditEntry.actorId, actorId),
    resource === undefined ? undefined : eq(auditEntry.resourceType, resource.type),
    resource?.id === undefined ? undefined : eq(auditEntry.resourceId, resource.id),
    from === undefined ? undefined : gte(auditEntry.id, smallestIdAt(from)),
    to === undefined ? undefined : lt(auditEntry.id, smallestIdAt(to)),
  ]
}

function entryOf(
  { id, at, action, changes, ...row }: Row,
  actorName: string | null,
): RecordedEntry {
  const { actorId, actorKeyId: keyId, requestId, clientAddress } = row
  return {
    id,
    at,
    action,
    actorName,
    actor: actorId === null ? null : { userId: actorId, keyId, requestId, clientAddress },
    resource: { type: row.resourceType, id: row.resourceId },
    changes: JSON.parse(changes),
  }
}
