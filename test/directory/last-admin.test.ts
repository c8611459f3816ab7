import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { connectAgain, type DirectoryGateway, outcome, startGateway } from './directory-gateway.ts'

/** At least one user must be able to manage groups. The only administrator here is `root`. */

let database: TestDatabase
let gateway: DirectoryGateway
let there: DirectoryGateway

beforeEach(async () => {
  database = await openTestDatabase()
  gateway = await startGateway(database)
  there = await startGateway(await connectAgain(database))
  await gateway.send('GET /v1/me')
})
afterEach(async () => {
  await gateway.stop()
  await there.stop()
  await database.close()
})

const refused = '409 last_admin_group'
const patchGroup = (name: string, json: unknown) =>
  gateway.send(`PATCH /v1/groups/${name}`, { json })
const disable = (subject: string, by = gateway) =>
  by.send(`PATCH /v1/users/${userIdOf(subject)}`, { json: { disabled: true } })

/** Another group whose one member by hand is a person of this subject. */
async function addAdmin(subject: string, group = 'keepers') {
  await gateway.statusOf(gateway.token(subject, ['users']))
  const permissions = ['can_access_api', 'can_manage_groups']
  await gateway.send('POST /v1/groups', { json: { name: group, permissions } })
  await gateway.send(`PUT /v1/groups/${group}/members/${userIdOf(subject)}`)
}

describe('the last administrator', () => {
  test.each<[string, unknown]>([
    ['without the permission', { permissions: ['can_access_api', 'can_edit_config'] }],
    ['without the permission that all need', { permissions: ['can_manage_groups'] }],
    ['behind another word of the token', { idp_claim: 'somebody-else' }],
  ])('cannot be left %s', async (_, json) => {
    expect(outcome(await patchGroup('admins', json))).toBe(refused)
    expect((await gateway.send('GET /v1/groups/admins')).body).toMatchObject({
      idp_claim: null,
      permissions: expect.arrayContaining(['can_manage_groups', 'can_access_api']),
    })
    expect(outcome(await gateway.send('GET /v1/groups'))).toBe('200')
  })

  test('another group cannot take the claim value of the administrators', async () => {
    const json = { name: 'thieves', idp_claim: 'admins' }
    expect(outcome(await gateway.send('POST /v1/groups', { json }))).toBe(refused)
    expect(outcome(await gateway.send('GET /v1/groups/thieves'))).toBe('404 not_found')
  })

  test('cannot be disabled, by token or API key', async () => {
    expect(outcome(await disable('root'))).toBe(refused)
    expect(outcome(await gateway.send('GET /v1/me'))).toBe('200')
  })

  test('may lose one of two memberships, not both', async () => {
    await addAdmin('root')
    const admins = { permissions: ['can_access_api'] }
    expect(outcome(await patchGroup('admins', admins))).toBe('200')
    expect(outcome(await gateway.send('DELETE /v1/groups/keepers'))).toBe(refused)
    const member = `/v1/groups/keepers/members/${userIdOf('root')}`
    expect(outcome(await gateway.send(`DELETE ${member}`))).toBe(refused)
    expect(outcome(await patchGroup('keepers', admins))).toBe(refused)
  })

  test('service accounts and disabled users do not count as administrators', async () => {
    await addAdmin('ann')
    const json = { name: 'robot', groups: ['admins'] }
    await gateway.send('POST /v1/service-accounts', { json })
    expect(outcome(await disable('ann'))).toBe('200')
    expect(outcome(await disable('root'))).toBe(refused)
  })

  test('may be removed once another administrator exists', async () => {
    await addAdmin('ann')
    expect(outcome(await disable('root'))).toBe('200')
    expect(outcome(await gateway.send('GET /v1/groups'))).toBe('401 user_disabled')
    const bearer = gateway.token('ann', ['users'])
    expect(outcome(await gateway.send('GET /v1/groups', { bearer }))).toBe('200')
  })
})

describe('concurrent changes that each leave one administrator', () => {
  const mayManage = async (subject: string, groups: readonly string[]) =>
    outcome(await there.send('GET /v1/groups', { bearer: gateway.token(subject, groups) }))
  /** The other replica learns of a change by its notification. */
  const oneIsLeft = () =>
    eventually('an administrator is left', async () =>
      (await Promise.all([mayManage('root', ['admins']), mayManage('ann', ['users'])])).includes(
        '200',
      ),
    )

  test.each([1, 2, 3])('one of two succeeds (run %i)', async () => {
    await addAdmin('ann')
    const both = await Promise.all([disable('root'), disable('ann', there)])
    // Who was disabled first is not heard any more.
    const others = both.map(outcome).filter((result) => result !== '200')
    expect([[refused], ['401 user_disabled']]).toContainEqual(others)
    await oneIsLeft()
  })

  test('one of two changes of different kinds succeeds', async () => {
    await addAdmin('ann')
    const path = `/v1/groups/keepers/members/${userIdOf('ann')}`
    const all = await Promise.all([
      patchGroup('admins', { permissions: [] }),
      there.send(`DELETE ${path}`),
      disable('ann'),
      there.send('DELETE /v1/groups/keepers'),
    ])
    expect(all.map(outcome)).toContain('200')
    await oneIsLeft()
  })
})
