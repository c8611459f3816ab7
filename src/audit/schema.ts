import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable, pageQuery } from '#api/shapes.ts'
import { parsePage } from '#auth/schema.ts'
import type { JsonObject } from '#lib/json.ts'
import { refused } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { AuditFilter, AuditPage, RecordedEntry } from './audit.ts'

/** The wire shapes of `/v1/audit-log`. */

const fields = (description: string) =>
  Type.Unsafe<JsonObject | null>(
    Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()], { description }),
  )

export const auditRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('audit_entry'),
    created_at: instant('When it was done'),
    actor: nullable(
      Type.Object({
        id: Type.String({ format: 'uuid', description: 'The user.' }),
        api_key_id: nullable(Type.String(), 'The API key that was used; null for a token.'),
      }),
      'Who did it; null: the system itself.',
    ),
    action: Type.String({ description: 'Such as `group.update` or `user.disable`.' }),
    resource: Type.Object({ type: Type.String(), id: Type.String() }),
    changes: Type.Object({
      before: fields('The fields that changed, as they were; null for what was not there.'),
      after: fields('The same as they became; null for what is gone.'),
    }),
    request_id: nullable(Type.String(), 'As in the `x-request-id` of the answer to the request.'),
  },
  { $id: 'AuditEntry' },
)
export type AuditRecord = Static<typeof auditRecord>

const wordCharsMax = 512

export const auditQuery = Type.Object({
  actor: Type.Optional(Type.String({ description: 'The id of the user who did it.' })),
  action: Type.Optional(
    Type.String({ description: 'An action, or how several begin: `group` for all of groups.' }),
  ),
  resource: Type.Optional(
    Type.String({ description: 'A type, or a type and an id: `group` or `group:editors`.' }),
  ),
  ...pageQuery.properties,
})

const actionForm = /^[a-z_]+(\.[a-z_]+)*$/
const resourceForm = /^([a-z_]+)(?::(.+))?$/su

/** Which entries are asked for; throws an `AppError` of status 422. */
export function parseAuditQuery(query: Readonly<Record<string, string | undefined>>): {
  filter: AuditFilter
  page: AuditPage
} {
  const { actor, action, resource } = query
  if (actor !== undefined && !isUuid(actor)) {
    throw refused('actor', '"actor" must be the id of a user.')
  }
  if (action !== undefined && !(fits(action) && actionForm.test(action))) {
    throw refused('action', '"action" must be an action such as group.update, or how some begin.')
  }
  return {
    filter: { actorId: actor, action, resource: parseResource(resource) },
    page: parsePage(query),
  }
}

function parseResource(given: string | undefined): AuditFilter['resource'] {
  if (given === undefined) return undefined
  const [, type, id] = (fits(given) && resourceForm.exec(given)) || []
  if (type === undefined) {
    throw refused('resource', '"resource" must be a type, or a type and an id: group:editors.')
  }
  return { type, id }
}

function fits(text: string): boolean {
  return text.length <= wordCharsMax && text.isWellFormed() && !text.includes('\0')
}

export function renderEntry({ at, actor, ...entry }: RecordedEntry): AuditRecord {
  const { id, action, resource, changes } = entry
  return {
    id,
    object: 'audit_entry',
    created_at: at.toISOString(),
    actor: actor === null ? null : { id: actor.userId, api_key_id: actor.keyId },
    action,
    resource,
    changes,
    request_id: actor?.requestId ?? null,
  }
}
