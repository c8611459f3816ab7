import type { JsonObject } from '#lib/json.ts'
import type { RequestContext } from '#lib/request-context.ts'
import { type AuditDatabase, createAuditStore, type InsertHandle } from './store.ts'

/** Who makes a change, and with which credential. */
export type Actor = {
  readonly userId: string
  /** Null for a token. */
  readonly keyId: string | null
  /** As in `x-request-id`; null outside of a request. */
  readonly requestId: string | null
}

/** One change. It must not contain secrets. */
export type AuditEntry = {
  /** Null: the system itself. */
  readonly actor: Actor | null
  /** Resource and verb: `group.update`, `group.member.add`. */
  readonly action: string
  readonly resource: { readonly type: string; readonly id: string }
  /** The changed fields before and after. */
  readonly changes: { readonly before: JsonObject | null; readonly after: JsonObject | null }
}

export type RecordedEntry = AuditEntry & { readonly id: string; readonly at: Date }

/** All given conditions must hold. */
export type AuditFilter = {
  readonly actorId: string | undefined
  /** `group.update`, or `group` for every action that starts with it. */
  readonly action: string | undefined
  readonly resource: { readonly type: string; readonly id: string | undefined } | undefined
}

export type AuditPage = { readonly limit: number; readonly after: string | undefined }

/** The append-only record of administrative changes. */
export type Audit = {
  /** With a transaction, the entry is committed if and only if the change is. */
  record(entry: AuditEntry, transaction?: InsertHandle): Promise<void>
  /** Newest first, after the entry with the id `after`. */
  list(
    filter: AuditFilter,
    page: AuditPage,
  ): Promise<{ entries: readonly RecordedEntry[]; hasMore: boolean }>
}

export function createAudit(deps: { database: AuditDatabase; now: () => Date }): Audit {
  const store = createAuditStore(deps.database)
  return {
    async record(entry, transaction) {
      const at = deps.now()
      await store.add({ ...entry, id: Bun.randomUUIDv7('hex', at), at }, transaction)
    },
    async list(filter, { limit, after }) {
      const entries = await store.list(filter, { limit: limit + 1, after })
      return { entries: entries.slice(0, limit), hasMore: entries.length > limit }
    },
  }
}

/** The actor of a request. */
export function actorOf({ principal, keyId, requestId }: RequestContext): Actor {
  return { userId: principal.userId, keyId, requestId }
}
