import { type Static, Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import { inOrder } from '#auth/permissions.ts'
import { isServiceSubject, type Principal } from '#auth/principal.ts'
import { permissionNames } from '#config/schema.ts'

/** The wire shape of `/v1/me`. */

const oneOf = <Word extends string>(...words: Word[]) =>
  Type.Union(words.map((word) => Type.Literal(word)))

export const callerRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('user'),
    kind: oneOf('user', 'service'),
    subject: Type.String({ description: 'The `sub` of your tokens, or what stands in its place.' }),
    name: nullable(Type.String(), 'As your token, or the maker of the account, calls you.'),
    groups: Type.Array(Type.Object({ id: Type.String(), name: Type.String() }), {
      description: 'Words of your token that mean no known group are among them.',
    }),
    permissions: Type.Array(oneOf(...permissionNames), {
      description: 'What your groups come to at this moment.',
    }),
    auth: oneOf('jwt', 'api_key'),
    api_key_id: nullable(Type.String({ format: 'uuid' }), 'The API key that was used.'),
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
    permissions: inOrder(permissions),
    auth: credential.kind === 'jwt' ? 'jwt' : 'api_key',
    api_key_id: credential.kind === 'api-key' ? credential.keyId : null,
  }
}
