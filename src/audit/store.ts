import { and, desc, eq, inArray, like, lt, or } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { auditEntry } from '#db/schema/audit.ts'
import type { AuditFilter, AuditPage, RecordedEntry } from './audit.ts'

export type AuditDatabase = Pick<Database, 'drizzle'>

/** A transaction, or the database itself. */
export type InsertHandle = Pick<Database['drizzle'], 'insert'>

type Row = typeof auditEntry.$inferSelect

export function createAuditStore({ drizzle }: AuditDatabase) {
  const ask = createQueryRunner()
  return {
    async add(entry: RecordedEntry, transaction?: InsertHandle): Promise<void> {
      if (transaction === undefined) {
        await ask(async () => drizzle.insert(auditEntry).values(rowOf(entry)))
        return
      }
      await transaction.insert(auditEntry).values(rowOf(entry))
    },

    /** Newest first. */
    list: (filter: AuditFilter, { limit, after }: AuditPage): Promise<RecordedEntry[]> =>
      ask(async () => {
        const rows = await drizzle
          .select()
          .from(auditEntry)
          .where(
            and(
              ...conditionsOf(filter),
              after === undefined ? undefined : lt(auditEntry.id, after),
            ),
          )
          .orderBy(desc(auditEntry.id))
          .limit(limit)
        return rows.map(entryOf)
      }),

    /** Deletes at most `rowsMax` entries with smaller ids; true if none is left. */
    async dropBefore(id: string, rowsMax: number): Promise<boolean> {
      const due = drizzle
        .select({ id: auditEntry.id })
        .from(auditEntry)
        .where(lt(auditEntry.id, id))
        .orderBy(auditEntry.id)
        .limit(rowsMax)
      const dropped = await drizzle
        .delete(auditEntry)
        .where(inArray(auditEntry.id, due))
        .returning({ id: auditEntry.id })
      return dropped.length < rowsMax
    },
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

function rowOf({ id, at, actor, action, resource, changes }: RecordedEntry): Row {
  return {
    id,
    at,
    action,
    actorId: actor?.userId ?? null,
    actorKeyId: actor?.keyId ?? null,
    requestId: actor?.requestId ?? null,
    resourceType: resource.type,
    resourceId: resource.id,
    changes: JSON.stringify(changes),
  }
}

function entryOf({ id, at, action, changes, ...row }: Row): RecordedEntry {
  const { actorId, actorKeyId: keyId, requestId } = row
  return {
    id,
    at,
    action,
    actor: actorId === null ? null : { userId: actorId, keyId, requestId },
    resource: { type: row.resourceType, id: row.resourceId },
    changes: JSON.parse(changes),
  }
}
