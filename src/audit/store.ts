import { and, desc, eq, inArray, like, lt, or } from 'drizzle-orm'
import { insertAuditEntry } from '#db/audit-entries.ts'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { auditEntry } from '#db/schema/audit.ts'
import { type Page, type PageRequest, pageOf } from '#lib/page.ts'
import type { AuditEntry } from './audit.ts'

type AuditDatabase = Pick<Database, 'drizzle'>

/** A transaction, or the database itself. */
type InsertHandle = Pick<Database['drizzle'], 'insert'>

type Row = typeof auditEntry.$inferSelect

export type RecordedEntry = AuditEntry & { readonly id: string; readonly at: Date }

/** All given conditions must hold. */
export type AuditFilter = {
  readonly actorId?: string | undefined
  /** `group.update`, or `group` for every action that starts with it. */
  readonly action?: string | undefined
  readonly resource?: { readonly type: string; readonly id: string | undefined } | undefined
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
        const rows = await drizzle
          .select()
          .from(auditEntry)
          .where(and(...conditionsOf(filter), isAfter))
          .orderBy(desc(auditEntry.id))
          .limit(limit + 1)
        return pageOf(rows.map(entryOf), limit)
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
  // Ids start with their time, so comparing ids compares ages.
  const smallestKept = Bun.randomUUIDv7('hex', now.getTime() - keepDays * dayMs)
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

function conditionsOf({ actorId, action, resource }: AuditFilter) {
  return [
    actorId === undefined ? undefined : eq(auditEntry.actorId, actorId),
    action === undefined
      ? undefined
      : or(eq(auditEntry.action, action), like(auditEntry.action, `${escapePattern(action)}.%`)),
    resource === undefined ? undefined : eq(auditEntry.resourceType, resource.type),
    resource?.id === undefined ? undefined : eq(auditEntry.resourceId, resource.id),
  ]
}

function escapePattern(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&')
}

function entryOf({ id, at, action, changes, ...row }: Row): RecordedEntry {
  const { actorId, actorKeyId: keyId, requestId, clientAddress } = row
  return {
    id,
    at,
    action,
    actor: actorId === null ? null : { userId: actorId, keyId, requestId, clientAddress },
    resource: { type: row.resourceType, id: row.resourceId },
    changes: JSON.parse(changes),
  }
}
