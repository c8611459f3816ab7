import type { Database } from './client.ts'
import { auditEntry } from './schema/audit.ts'

type Fields = { readonly [field: string]: unknown }

type NewEntry = {
  /** Null: the system itself. */
  readonly actor: {
    readonly userId: string
    readonly keyId: string | null
    readonly requestId: string | null
  } | null
  readonly action: string
  readonly resource: { readonly type: string; readonly id: string }
  readonly changes: { readonly before: Fields | null; readonly after: Fields | null }
}

/** In a transaction, the entry is committed if and only if the change is. */
export async function insertAuditEntry(
  handle: Pick<Database['drizzle'], 'insert'>,
  { actor, action, resource, changes }: NewEntry,
  at: Date,
): Promise<void> {
  await handle.insert(auditEntry).values({
    id: Bun.randomUUIDv7('hex', at),
    at,
    actorId: actor?.userId ?? null,
    actorKeyId: actor?.keyId ?? null,
    requestId: actor?.requestId ?? null,
    action,
    resourceType: resource.type,
    resourceId: resource.id,
    changes: JSON.stringify(changes),
  })
}

type Origin = { readonly keyId: string | null; readonly requestId: string }

type RecordedChange = {
  readonly kind: 'file' | 'folder' | 'collection' | 'reindex'
  readonly id: string
  readonly action: string
  readonly before?: Fields
  readonly after?: Fields
  readonly at: Date
}

/** Adds `<kind>.<action>` of a principal; `before` and `after` are the changed fields. */
export function recordChange(
  handle: Pick<Database['drizzle'], 'insert'>,
  principal: { readonly userId: string; readonly origin?: Origin },
  change: RecordedChange,
): Promise<void> {
  const { kind, id, action, before = null, after = null, at } = change
  const { userId, origin } = principal
  const actor = { userId, keyId: origin?.keyId ?? null, requestId: origin?.requestId ?? null }
  const resource = { type: kind, id }
  const entry = { actor, action: `${kind}.${action}`, resource, changes: { before, after } }
  return insertAuditEntry(handle, entry, at)
}
