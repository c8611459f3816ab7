import type { JsonObject } from '#lib/json.ts'
import { type AuditDatabase, createAuditStore, type Recording } from './store.ts'

/** Who does something, and by which credential. */
export type Actor = {
  readonly userId: string
  /** Null for a token. */
  readonly keyId: string | null
  /** As in `x-request-id`; null where no request asked for it. */
  readonly requestId: string | null
}

/** One thing that was done. Nothing secret may be in it. */
export type AuditEntry = {
  /** Null: the system itself. */
  readonly actor: Actor | null
  /** What it was done to and what was done: `group.update`, `group.member.add`. */
  readonly action: string
  readonly resource: { readonly type: string; readonly id: string }
  /** The fields that changed, as they were and as they became. */
  readonly changes: { readonly before: JsonObject | null; readonly after: JsonObject | null }
}

export type RecordedEntry = AuditEntry & { readonly id: string; readonly at: Date }

/** All that is given must hold. */
export type AuditFilter = {
  readonly actorId: string | undefined
  /** `group.update`, or `group` for all that begins so. */
  readonly action: string | undefined
  readonly resource: { readonly type: string; readonly id: string | undefined } | undefined
}

export type AuditPage = { readonly limit: number; readonly after: string | undefined }

/** The record of what administrators did; entries are only ever added. */
export type Audit = {
  /** With a transaction, the entry is there if and only if the rest is. */
  record(entry: AuditEntry, transaction?: Recording): Promise<void>
  /** Newest first, from after the entry with the id `after`. */
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
