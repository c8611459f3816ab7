import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  column,
  connectAgain,
  type DirectoryGateway,
  makeKey,
  outcome,
  root,
  startGateway,
} from './directory-gateway.ts'

let database: TestDatabase
let gateway: DirectoryGateway
let there: DirectoryGateway

beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startGateway(database)
  there = await startGateway(await connectAgain(database))
  for (const name of ['staff', 'crew']) {
    const json = { name, permissions: ['can_manage_models'] }
    await gateway.send('POST /v1/groups', { json })
  }
})
afterAll(async () => {
  await gateway.stop()
  await there.stop()
  await database.close()
})

const place = (group: string, subject: string) => `/v1/groups/${group}/members/${userIdOf(subject)}`
const add = (group: string, subject: string) => gateway.send(`PUT ${place(group, subject)}`)
const remove = (group: string, subject: string) => gateway.send(`DELETE ${place(group, subject)}`)
const sourcesOf = async (group: string, subject: string) => {
  const { body } = await gateway.send(`GET /v1/groups/${group}/members?limit=100`)
  const members: { id: string; sources: string[] }[] = Object(body['data'])
  return members.find(({ id }) => id === userIdOf(subject))?.sources
}

describe('a manual member', () => {
  test('is listed with its grantor, and has the permissions immediately by token and key', async () => {
    const token = gateway.token('ann', ['users'])
    const { key } = await makeKey(gateway, token)
    expect((await there.rightsOf(token)).groups).toEqual(['users'])
    expect((await there.rightsOf(key)).groups).toEqual(['users'])
    expect((await add('staff', 'ann')).body).toEqual({
      id: userIdOf('ann'),
      object: 'group.member',
      kind: 'user',
      subject: 'ann',
      name: null,
      disabled_at: null,
      sources: ['manual'],
      granted_by: root,
      granted_at: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    const given = {
      groups: ['staff', 'users'],
      permissions: ['can_access_api', 'can_manage_models'],
    }
    expect(await gateway.rightsOf(token)).toEqual(given)
    expect(await gateway.rightsOf(key)).toEqual(given)
    for (const bearer of [token, key]) {
      await eventually('the other replica has heard of it', async () =>
        Bun.deepEquals(await there.rightsOf(bearer), given),
      )
    }
    expect(outcome(await remove('staff', 'ann'))).toBe('200')
    expect((await gateway.rightsOf(key)).groups).toEqual(['users'])
    await eventually('the other replica has heard of that too', async () =>
      Bun.deepEquals((await there.rightsOf(token)).groups, ['users']),
    )
  })

  test('is kept when a token does not list the group', async () => {
    await gateway.statusOf(gateway.token('bob', ['users']))
    await add('staff', 'bob')
    const { granted_at: givenAt } = (await add('staff', 'bob')).body
    const later = Math.floor(gateway.now().getTime() / 1_000)
    for (const [index, groups] of [['users', 'crew'], ['users'], ['idlers', 'users']].entries()) {
      const token = gateway.token('bob', groups, { iat: later + index })
      expect((await gateway.rightsOf(token)).groups).toEqual([...groups, 'staff'].sort())
    }
    expect(await sourcesOf('staff', 'bob')).toEqual(['manual'])
    expect((await add('staff', 'bob')).body['granted_at']).toBe(givenAt)
  })

  test('a second removal is not_found', async () => {
    await gateway.statusOf(gateway.token('cy', ['users']))
    await add('staff', 'cy')
    expect(outcome(await remove('staff', 'cy'))).toBe('200')
    expect(outcome(await remove('staff', 'cy'))).toBe('404 not_found')
  })
})

describe('a member by token', () => {
  test('cannot be removed manually', async () => {
    await gateway.statusOf(gateway.token('dan', ['users', 'staff']))
    expect(outcome(await remove('staff', 'dan'))).toBe('409 idp_managed')
    expect(await sourcesOf('staff', 'dan')).toEqual(['idp'])
  })

  test('may also be a manual member; both sources are listed and removed separately', async () => {
    const token = gateway.token('eve', ['users', 'staff'])
    await gateway.statusOf(token)
    expect((await add('staff', 'eve')).body['sources']).toEqual(['idp', 'manual'])
    expect(outcome(await remove('staff', 'eve'))).toBe('200')
    expect(await sourcesOf('staff', 'eve')).toEqual(['idp'])
    await add('staff', 'eve')
    const later = Math.floor(gateway.now().getTime() / 1_000) + 1
    await gateway.statusOf(gateway.token('eve', ['users'], { iat: later }))
    expect(await sourcesOf('staff', 'eve')).toEqual(['manual'])
  })

  test('belongs to the group with that idp_claim', async () => {
    await gateway.send('PATCH /v1/groups/crew', { json: { idp_claim: 'x-crew' } })
    await gateway.statusOf(gateway.token('fay', ['users', 'x-crew']))
    await gateway.statusOf(gateway.token('gus', ['users', 'crew']))
    expect(await sourcesOf('crew', 'fay')).toEqual(['idp'])
    expect(await sourcesOf('crew', 'gus')).toBeUndefined()
    expect((await gateway.send('GET /v1/groups/crew')).body['members']).toBe(1)
  })
})

test('unknown groups and users are not_found', async () => {
  expect(outcome(await add('nobody', 'ann'))).toBe('404 not_found')
  expect(outcome(await add('staff', 'never seen'))).toBe('404 not_found')
  expect(outcome(await gateway.send('PUT /v1/groups/staff/members/x'))).toBe('404 not_found')
  expect(outcome(await remove('nobody', 'ann'))).toBe('404 not_found')
  expect(outcome(await gateway.send('GET /v1/groups/nobody/members'))).toBe('404 not_found')
  expect(outcome(await gateway.send('GET /v1/groups/%00/members'))).toBe('404 not_found')
})

test('members are listed in pages without duplicates', async () => {
  await gateway.send('POST /v1/groups', { json: { name: 'many' } })
  const subjects = Array.from({ length: 5 }, (_, index) => `member ${index}`)
  for (const subject of subjects) {
    await gateway.statusOf(gateway.token(subject, ['users', 'many']))
    await add('many', subject)
  }
  const seen: unknown[] = []
  let after = ''
  for (let more = true; more; ) {
    const page = await gateway.send(`GET /v1/groups/many/members?limit=2${after}`)
    seen.push(...column(page, 'id'))
    more = page.body['has_more'] === true
    after = `&after=${page.body['last_id']}`
  }
  expect(seen).toEqual(subjects.map(userIdOf).toSorted())
  expect((await gateway.send('GET /v1/groups/many')).body['members']).toBe(5)
  expect(outcome(await gateway.send('GET /v1/groups/many/members?after=x'))).toBe(
    '422 unprocessable',
  )
})
