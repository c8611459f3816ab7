import { eventually } from '#test/support/eventually.ts'
import { makeKey, type Replica, tokenOf } from '#test/support/rights-gateways.ts'

export type Credential = {
  readonly name: string
  readonly bearer: string
  readonly isValid: boolean
  readonly isStaff: boolean
  /** Null: no restriction. */
  readonly scopes: readonly string[] | null
  readonly models: readonly string[] | null
}

/** Every kind of credential. */
export const names = [
  'token of staff',
  'token of others',
  'key of staff',
  'key of others',
  'key with a list of models',
  'key of others with a list of models',
  'key with the scope inference',
  'key with the scope files',
  'key with the scope speech',
  'key with the scope admin',
  'rotated key',
  'replaced secret during the overlap',
  'replaced secret after the overlap',
  'expired key',
  'revoked key',
  'key revoked by an administrator',
] as const
export const staff = tokenOf('sam', ['users', 'staff'])
const others = tokenOf('otto', ['users'])
const listed = ['open*', 'listed-*']

/** Makes the credentials at one process, after the other one has those in its cache that change. */
export async function makeCredentials(
  here: Replica,
  there: Replica,
): Promise<ReadonlyMap<string, Credential>> {
  const credentials = new Map<string, Credential>()
  const add = (name: (typeof names)[number], bearer: string, given: Partial<Credential> = {}) =>
    credentials.set(name, {
      name,
      bearer,
      isValid: true,
      isStaff: true,
      scopes: null,
      models: null,
      ...given,
    })
  const make = async (fields: object = {}, owner = staff) => makeKey(here, owner, fields)
  const operate = (bearer: string, operation: string, json?: unknown) =>
    here.send(bearer, operation, json)
  add('token of staff', staff)
  add('token of others', others, { isStaff: false })
  add('key of staff', (await make()).key)
  add('key of others', (await make({}, others)).key, { isStaff: false })
  const models = listed
  add('key with a list of models', (await make({ models })).key, { models })
  const narrow = await make({ models }, others)
  add('key of others with a list of models', narrow.key, { models, isStaff: false })
  for (const scope of ['inference', 'files', 'speech', 'admin'] as const) {
    const scopes = [scope]
    add(`key with the scope ${scope}`, (await make({ scopes })).key, { scopes })
  }
  const rotated = await make()
  // The other process has the secrets in its cache before they change.
  await there.send(rotated.key, 'GET /v1/me')
  const { body } = await operate(staff, `POST /v1/api-keys/${rotated.id}/rotate`)
  add('rotated key', String(body['key']))
  add('replaced secret during the overlap', rotated.key)
  const ended = await make()
  await there.send(ended.key, 'GET /v1/me')
  await operate(staff, `POST /v1/api-keys/${ended.id}/rotate`, { overlap_seconds: 0 })
  add('replaced secret after the overlap', ended.key, { isValid: false })
  const revoked = await make()
  await there.send(revoked.key, 'GET /v1/me')
  await operate(staff, `DELETE /v1/api-keys/${revoked.id}`)
  add('revoked key', revoked.key, { isValid: false })
  const banned = await make()
  await there.send(banned.key, 'GET /v1/me')
  await operate(tokenOf('root', ['admins']), `DELETE /v1/api-keys/${banned.id}`)
  add('key revoked by an administrator', banned.key, { isValid: false })
  const expired = await make({ expires_at: new Date(Date.now() + 1_500).toISOString() })
  add('expired key', expired.key, { isValid: false })
  for (const { isValid, bearer, name } of credentials.values()) {
    if (isValid) continue
    await eventually(`the ${name} is refused at both processes`, async () => {
      const answers = [
        await here.send(bearer, 'GET /v1/me'),
        await there.send(bearer, 'GET /v1/me'),
      ]
      return answers.every(({ status }) => status === 401)
    })
  }
  return credentials
}
