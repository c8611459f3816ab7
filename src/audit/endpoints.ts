import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint } from '#api/endpoint.ts'
import {
  idExample,
  instant,
  instantExample,
  nullable,
  pageQuery,
  pageResponse,
  renderPage,
} from '#api/shapes.ts'
import type { JsonObject } from '#lib/json.ts'
import { readTimeParam } from '#lib/time-param.ts'
import type { Audit, AuditFilter, RecordedEntry } from './store.ts'

/** The audit log of administrative changes. */
export function auditEndpoints({ audit }: { audit: Pick<Audit, 'list'> }): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/audit-log',
      permission: 'can_manage_groups',
      tag: 'Directory',
      summary: 'List administrative changes',
      description:
        'Newest first. Entries are written in the transaction of the change, contain no secrets, and are kept for `audit.keep_days`.',
      query: auditQuery,
      responses: { 200: pageResponse('A page of entries.', auditRecord, auditExample) },
      errors: {
        unprocessable:
          '"from" must be a date or a time with its zone, such as 2026-11-01 or 2026-11-01T08:00:00Z.',
      },
      async handle({ query: { actor, action, resource, from, to, ...page } }) {
        const filter = {
          actorId: actor,
          action,
          resource: parseResource(resource),
          from: from === undefined ? undefined : readTimeParam('from', from),
          to: to === undefined ? undefined : readTimeParam('to', to),
        }
        return renderPage(await audit.list(filter, page), renderEntry)
      },
    }),
  ]
}

const textCharsMax = 512

const auditQuery = Type.Object({
  actor: Type.Optional(Type.String({ format: 'uuid', description: 'The id of a user.' })),
  action: Type.Optional(
    Type.String({
      pattern: '^[a-z_]+(\\.[a-z_]+)*$',
      maxLength: textCharsMax,
      description: 'An action, such as `group.update`, or its first words, such as `group`.',
    }),
  ),
  resource: Type.Optional(
    Type.String({
      pattern: '^[a-z_]+(:[^]+)?$',
      maxLength: textCharsMax,
      description: 'A type, or a type and an id: `group` or `group:editors`.',
    }),
  ),
  from: Type.Optional(Type.String({ description: 'A date or a time with its zone.' })),
  to: Type.Optional(Type.String({ description: 'The same, excluded.' })),
  ...pageQuery.properties,
})

function parseResource(text: string | undefined): AuditFilter['resource'] {
  if (text === undefined) return undefined
  const colon = text.indexOf(':')
  return colon === -1
    ? { type: text, id: undefined }
    : { type: text.slice(0, colon), id: text.slice(colon + 1) }
}

const fields = (description: string) =>
  Type.Unsafe<JsonObject | null>(
    Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()], { description }),
  )

const auditRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('audit_entry'),
    created_at: instant('When the change was made'),
    actor: nullable(
      Type.Object({
        id: Type.String({ format: 'uuid', description: 'The user.' }),
        name: nullable(Type.String(), 'Name or subject; null for a deleted user.'),
        api_key_id: nullable(Type.String(), 'The API key in use; null for a token.'),
        ip_address: nullable(Type.String(), 'The client; null where the change had no request.'),
      }),
      'Who made the change; null for the system.',
    ),
    action: Type.String({ description: 'Such as `group.update` or `user.disable`.' }),
    resource: Type.Object({ type: Type.String(), id: Type.String() }),
    changes: Type.Object({
      before: fields('The changed fields before the change; null for a new resource.'),
      after: fields('The changed fields after the change; null for a deleted resource.'),
    }),
    request_id: nullable(Type.String(), 'The `x-request-id` of the request.'),
  },
  { $id: 'AuditEntry' },
)
type AuditRecord = Static<typeof auditRecord>

function renderEntry({ at, actor, actorName, ...entry }: RecordedEntry): AuditRecord {
  const { id, action, resource, changes } = entry
  return {
    id,
    object: 'audit_entry',
    created_at: at.toISOString(),
    actor:
      actor === null
        ? null
        : {
            id: actor.userId,
            name: actorName,
            api_key_id: actor.keyId,
            ip_address: actor.clientAddress ?? null,
          },
    action,
    resource,
    changes,
    request_id: actor?.requestId ?? null,
  }
}

const auditExample: AuditRecord = {
  id: idExample,
  object: 'audit_entry',
  created_at: instantExample,
  actor: {
    id: '5f2b1c9e-7a34-8d60-9e11-c4a8b7d20f35',
    name: 'ann',
    api_key_id: null,
    ip_address: '192.0.2.7',
  },
  action: 'group.update',
  resource: { type: 'group', id: 'editors' },
  changes: {
    before: { permissions: ['can_access_api'] },
    after: { permissions: ['can_access_api', 'can_edit_config'] },
  },
  request_id: 'req_0a1b2c3d4e5f6g7h8j9k0m1n2p',
}
