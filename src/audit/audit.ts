import type { JsonObject } from '#lib/json.ts'
import type { RequestContext } from '#lib/request-context.ts'

/** Who makes a change, and with which credential. */
export type Actor = {
  readonly userId: string
  /** Null for a token. */
  readonly keyId: string | null
  /** As in `x-request-id`; null outside of a request. */
  readonly requestId: string | null
  /** Of the client; absent outside of a request. */
  readonly clientAddress?: string | null
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

/** The actor of a request. */
export function actorOf({
  principal,
  keyId,
  requestId,
  clientAddress = null,
}: RequestContext): Actor {
  return { userId: principal.userId, keyId, requestId, clientAddress }
}

/** The fields that differ, before and after; null: none. A resource that does not exist is null. */
export function changedFields(
  before: JsonObject | null,
  after: JsonObject | null,
): AuditEntry['changes'] | null {
  const names = Object.keys({ ...before, ...after })
  const changed = names.filter((name) => !Bun.deepEquals(before?.[name], after?.[name]))
  if (changed.length === 0) return null
  const pick = (fields: JsonObject | null) =>
    fields === null ? null : Object.fromEntries(changed.map((name) => [name, fields[name]]))
  return { before: pick(before), after: pick(after) }
}
