import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { nullable } from '#api/shapes.ts'
import { permissionNames, sortPermissions } from '#auth/permissions.ts'
import { isServiceSubject, type Principal } from '#auth/principal.ts'

/** The caller; answered without the database. */
export function meEndpoint(): Endpoint {
  return endpoint({
    method: 'GET',
    path: '/v1/me',
    permission: 'can_access_api',
    tag: 'Directory',
    scope: null,
    summary: 'Show the current user',
    description: 'The user of the credential, with groups and permissions.',
    responses: { 200: { description: 'The user.', content: json(callerRecord, callerExample) } },
    handle: ({ context }) => renderCaller(context.principal),
  })
}

const oneOf = <Value extends string>(...values: Value[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))

export const callerRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('user'),
    kind: oneOf('user', 'service'),
    subject: Type.String({
      description: 'The `sub` of your tokens; of a service account, its own.',
    }),
    name: nullable(Type.String(), 'From your token, or as the service account was named.'),
    groups: Type.Array(Type.Object({ id: Type.String(), name: Type.String() }), {
      description: 'Including claim values of your token that map to no known group.',
    }),
    permissions: Type.Array(oneOf(...permissionNames), {
      description: 'The current permissions of your groups.',
    }),
    auth: oneOf('jwt', 'api_key'),
    api_key_id: nullable(Type.String({ format: 'uuid' }), 'The API key in use.'),
  },
  { $id: 'Caller' },
)
export type CallerRecord = Static<typeof callerRecord>

export function renderCaller(principal: Principal): CallerRecord {
  const { userId, subject, name, groups, permissions, credential } = principal
  return {
    id: userId,
    object: 'user',
    kind: isServiceSubject(subject) ? 'service' : 'user',
    subject,
    name,
    groups: groups.map((group) => ({ id: group, name: group })),
    permissions: sortPermissions(permissions),
    auth: credential.kind === 'jwt' ? 'jwt' : 'api_key',
    api_key_id: credential.kind === 'api-key' ? credential.keyId : null,
  }
}

export const callerExample: CallerRecord = {
  id: '5f2b1c9e-7a34-8d60-9e11-c4a8b7d20f35',
  object: 'user',
  kind: 'user',
  subject: 'ann@example.org',
  name: 'Ann Example',
  groups: [{ id: 'users', name: 'users' }],
  permissions: ['can_access_api'],
  auth: 'jwt',
  api_key_id: null,
}
