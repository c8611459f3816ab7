import { type Static, type TLiteral, type TUnion, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { idExample, instant, instantExample, nullable } from '#api/shapes.ts'
import type { Principal } from '#auth/principal.ts'
import { refused } from '#lib/unprocessable.ts'
import { type LimitUse, type LimitUses, useScopes } from './use.ts'

const oneOf = <const Name extends string>(
  names: readonly Name[],
  description: string,
): TUnion<TLiteral<Name>[]> =>
  Type.Union(
    names.map((name) => Type.Literal(name)),
    { description },
  )

const useRecord = Type.Object(
  {
    object: Type.Literal('limit.use'),
    scope: oneOf(useScopes, 'Whose limit or budget it is.'),
    id: Type.String({
      description: 'The id of the user or key, or the name of the group or model.',
    }),
    name: nullable(Type.String(), 'The name for display; null: deleted.'),
    kind: oneOf(['limit', 'budget'], '`budget`: per day or month.'),
    limit: Type.String({ description: 'As in the settings: `requests_per_minute`.' }),
    max: Type.Number(),
    used: Type.Number({ description: 'Of budgets of cost, in the currency of the prices.' }),
    share: Type.Number({ description: 'Used of `max`: 1 is full, more is debt.' }),
    hard: Type.Boolean({ description: 'Whether calls beyond it are refused; otherwise it warns.' }),
    resets_at: nullable(
      Type.String({ format: 'date-time' }),
      'When nothing is used any more; null: as soon as what runs has ended.',
    ),
    set_by: Type.Object(
      {
        scope: oneOf(['default', ...useScopes], 'The entry of the settings, or the key.'),
        id: nullable(Type.String(), 'Its name or id; null for the defaults.'),
      },
      { description: 'What sets this limit.' },
    ),
  },
  { $id: 'LimitUse', description: 'How much of one limit or budget is used.' },
)
const useList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(useRecord),
  at: instant('Time of the reading'),
})

const countMax = 200
const listQuery = Type.Object({
  scope: Type.Optional(oneOf(useScopes, 'Only those of users, groups, keys or models.')),
  id: Type.Optional(
    Type.String({
      description:
        'Only those of this user, group, key or model, unused ones included; needs `scope`.',
      minLength: 1,
      maxLength: 256,
    }),
  ),
  limit: Type.Integer({
    description: 'At most this many.',
    minimum: 1,
    maximum: countMax,
    default: 50,
  }),
})

/** Reading limits and budgets with their use. They are changed as settings and with keys. */
export function limitEndpoints({
  limitUses,
  now,
}: {
  limitUses: LimitUses
  now: () => Date
}): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/limits',
      permission: 'can_access_api',
      tag: 'Usage',
      summary: 'List limits and budgets with their use',
      description: `The fullest first, over all processes. With \`can_edit_config\`, those of everybody that were used in
the current minute, hour, day or month; otherwise those of the caller, of the caller's groups, and of the key of the
request, unused ones included. Limits and budgets are set with \`PATCH /v1/config\`, those of keys with
\`PATCH /v1/api-keys/{api_key_id}\`. Use is written about every half second.`,
      query: listQuery,
      responses: {
        200: {
          description: 'Limits and budgets.',
          content: json(useList, { object: 'list', data: [useExample], at: instantExample }),
        },
      },
      errors: { unprocessable: '"id" needs "scope".' },
      async handle({ query: { scope, id, limit }, context: { principal } }) {
        if (id !== undefined && scope === undefined) throw refused('id', '"id" needs "scope".')
        const given = scope === undefined || id === undefined ? undefined : [{ scope, id }]
        const mine = principal.permissions.has('can_edit_config') ? null : ownersOf(principal)
        const owners = mine?.filter(
          (owner) => (scope ?? owner.scope) === owner.scope && (id ?? owner.id) === owner.id,
        )
        const uses = await limitUses.list({ owners: owners ?? given, scope, countMax: limit })
        return {
          object: 'list',
          data: uses.map(render),
          at: now().toISOString(),
        } satisfies Static<typeof useList>
      },
    }),
  ]
}

/** Whose limits and budgets apply to calls of this principal, but for those of models. */
function ownersOf({ userId, groups, credential }: Principal) {
  return [
    { scope: 'user' as const, id: userId },
    ...groups.map((id) => ({ scope: 'group' as const, id })),
    ...(credential.kind === 'api-key' ? [{ scope: 'key' as const, id: credential.keyId }] : []),
  ]
}

function render({ isHard, resetsAt, from, ...use }: LimitUse): Static<typeof useRecord> {
  return {
    object: 'limit.use',
    ...use,
    hard: isHard,
    resets_at: resetsAt?.toISOString() ?? null,
    set_by: from,
  }
}

const useExample = {
  object: 'limit.use',
  scope: 'user',
  id: idExample,
  name: 'Ada',
  kind: 'limit',
  limit: 'requests_per_minute',
  max: 60,
  used: 48,
  share: 0.8,
  hard: true,
  resets_at: instantExample,
  set_by: { scope: 'group', id: 'staff' },
}
