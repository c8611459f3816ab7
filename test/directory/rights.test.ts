import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { permissionNames } from '#auth/permissions.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { type DirectoryGateway, makeKey, outcome, root, startGateway } from './directory-gateway.ts'

let database: TestDatabase
let gateway: DirectoryGateway
/** Who asks, by what they may do. */
const bearers = new Map<string, string | null>([['nobody', null]])

beforeAll(async () => {
  database = await openTestDatabase()
  const groups = Object.fromEntries(
    permissionNames.map((name) => [`with ${name}`, ['can_access_api' as const, name]]),
  )
  gateway = await startGateway(database, { groups: { ...groups, bare: ['can_manage_groups'] } })
  bearers.set('a stranger', gateway.token('stranger', ['strangers']))
  bearers.set('one without can_access_api', gateway.token('bare', ['bare']))
  for (const name of permissionNames) {
    const token = gateway.token(name, [`with ${name}`])
    bearers.set(name, token)
    bearers.set(`a key of ${name}`, (await makeKey(gateway, token)).key)
  }
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

const id = '0198a000-0000-7000-8000-000000000000'
const routes = [
  'GET /v1/groups',
  'POST /v1/groups',
  'GET /v1/groups/absent',
  'PATCH /v1/groups/absent',
  'DELETE /v1/groups/absent',
  'GET /v1/groups/absent/members',
  `PUT /v1/groups/absent/members/${id}`,
  `DELETE /v1/groups/absent/members/${id}`,
  'GET /v1/users',
  `GET /v1/users/${id}`,
  `PATCH /v1/users/${id}`,
  'POST /v1/service-accounts',
  `DELETE /v1/service-accounts/${id}`,
  `GET /v1/service-accounts/${id}/api-keys`,
  `POST /v1/service-accounts/${id}/api-keys`,
  `DELETE /v1/service-accounts/${id}/api-keys/${id}`,
  'GET /v1/audit-log',
]

describe.each(routes)('%s', (how) => {
  test('requires can_manage_groups', async () => {
    for (const [who, bearer] of bearers) {
      const answer = await gateway.send(how, { bearer })
      const result = outcome(answer)
      const mayManage = who.endsWith('can_manage_groups')
      if (who === 'nobody') expect(result, who).toBe('401 missing_credentials')
      else if (!mayManage) expect(result, who).toBe('403 permission_denied')
      else expect(result, who).not.toMatch(/^(401|403 permission_denied|500)/)
    }
  })
})

describe('GET /v1/me', () => {
  test('requires only can_access_api', async () => {
    for (const [who, bearer] of bearers) {
      const { status } = await gateway.send('GET /v1/me', { bearer })
      const expected = who === 'nobody' ? 401 : permissionNames.some((name) => who.endsWith(name))
      if (who === 'one without can_access_api') expect(status, who).toBe(403)
      else expect(status, who).toBe(expected === 401 ? 401 : expected ? 200 : 403)
    }
  })

  test('returns the user, the credential, groups and permissions', async () => {
    const groups = ['users', 'x-unknown']
    const bearer = gateway.token('ann', groups, { name: 'Ann' })
    expect((await gateway.send('GET /v1/me', { bearer })).body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      object: 'user',
      kind: 'user',
      subject: 'ann',
      name: 'Ann',
      groups: groups.map((name) => ({ id: name, name })),
      permissions: ['can_access_api'],
      auth: 'jwt',
      api_key_id: null,
    })
    const { id: keyId, key } = await makeKey(gateway, bearer)
    expect((await gateway.send('GET /v1/me', { bearer: key })).body).toMatchObject({
      name: 'Ann',
      auth: 'api_key',
      api_key_id: keyId,
    })
  })

  test('returns all permissions of an administrator', async () => {
    expect((await gateway.send('GET /v1/me')).body).toMatchObject({
      id: root,
      permissions: [...permissionNames],
    })
  })
})
