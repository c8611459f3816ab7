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

/** A change by a principal; `before` and `after` are the changed fields. */
export function recordChange(
  handle: Pick<Database['drizzle'], 'insert'>,
  principal: { readonly userId: string; readonly origin?: Origin },
  change: {
    readonly action: string
    readonly resource: NewEntry['resource']
    readonly before?: Fields
    readonly after?: Fields
    readonly at: Date
  },
): Promise<void> {
  const { action, resource, before = null, after = null, at } = change
  const { userId, origin } = principal
  const actor = { userId, keyId: origin?.keyId ?? null, requestId: origin?.requestId ?? null }
  return insertAuditEntry(handle, { actor, action, resource, changes: { before, after } }, at)
}
