import type { Database } from './client.ts'
import { auditEntry } from './schema/audit.ts'

type Fields = { readonly [field: string]: unknown }

type NewEntry = {
  /** Null: the system itself. */
  readonly actor: {
    readonly userId: string
    readonly keyId: string | null
    readonly requestId: string | null
    readonly clientAddress?: string | null
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
    clientAddress: actor?.clientAddress ?? null,
    action,
    resourceType: resource.type,
    resourceId: resource.id,
    changes: serialize(changes),
  })
}

/** Longer texts are cut: an entry says what changed, and is no copy of it. */
const textCharsMax = 500
/** Of both sides as JSON; above that, an entry has only the names of the fields. */
const changesCharsMax = 65_536
const namesMax = 100

function serialize({ before, after }: NewEntry['changes']): string {
  const text = JSON.stringify({ before, after }, shorten)
  if (text.length <= changesCharsMax) return text
  return JSON.stringify({ before: namesOf(before), after: namesOf(after) }, shorten)
}

function shorten(_: string, value: unknown): unknown {
  if (typeof value !== 'string' || value.length <= textCharsMax) return value
  return `${value.slice(0, textCharsMax).toWellFormed()}…`
}

function namesOf(fields: Fields | null) {
  return fields === null
    ? null
    : { too_large: true, fields: Object.keys(fields).slice(0, namesMax) }
}

type Origin = {
  readonly keyId: string | null
  readonly requestId: string
  readonly clientAddress?: string | null
}

type RecordedChange = {
  readonly kind:
    | 'model'
    | 'model_download'
    | 'agent'
    | 'branding'
    | 'collection'
    | 'file'
    | 'folder'
    | 'reindex'
    | 'translation'
    | 'webhook_endpoint'
  readonly id: string
  readonly action: string
  readonly before?: Fields | null
  readonly after?: Fields | null
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
  const actor = {
    userId,
    keyId: origin?.keyId ?? null,
    requestId: origin?.requestId ?? null,
    clientAddress: origin?.clientAddress ?? null,
  }
  const resource = { type: kind, id }
  const entry = { actor, action: `${kind}.${action}`, resource, changes: { before, after } }
  return insertAuditEntry(handle, entry, at)
}
