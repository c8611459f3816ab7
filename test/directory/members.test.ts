import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { column, connectAgain, makeKey, outcome, root, startWorld, type World } from './world.ts'

let database: TestDatabase
let world: World
let there: World

beforeAll(async () => {
  database = await openTestDatabase()
  world = await startWorld(database)
  there = await startWorld(await connectAgain(database))
  for (const name of ['staff', 'crew']) {
    const json = { name, permissions: ['can_manage_models'] }
    await world.send('POST /v1/groups', { json })
  }
})
afterAll(async () => {
  await world.stop()
  await there.stop()
  await database.close()
})

const place = (group: string, subject: string) => `/v1/groups/${group}/members/${userIdOf(subject)}`
const add = (group: string, subject: string) => world.send(`PUT ${place(group, subject)}`)
const remove = (group: string, subject: string) => world.send(`DELETE ${place(group, subject)}`)
const sourcesOf = async (group: string, subject: string) => {
  const { body } = await world.send(`GET /v1/groups/${group}/members?limit=100`)
  const members: { id: string; sources: string[] }[] = Object(body['data'])
  return members.find(({ id }) => id === userIdOf(subject))?.sources
}

describe('a member by hand', () => {
  test('is told with who gave it, and has the rights at once, with token and key', async () => {
    const token = world.token('ann', ['users'])
    const { key } = await makeKey(world, token)
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
    expect(await world.rightsOf(token)).toEqual(given)
    expect(await world.rightsOf(key)).toEqual(given)
    for (const bearer of [token, key]) {
      await eventually('the other replica has heard of it', async () =>
        Bun.deepEquals(await there.rightsOf(bearer), given),
      )
    }
    expect(outcome(await remove('staff', 'ann'))).toBe('200')
    expect((await world.rightsOf(key)).groups).toEqual(['users'])
    await eventually('the other replica has heard of that too', async () =>
      Bun.deepEquals((await there.rightsOf(token)).groups, ['users']),
    )
  })

  test('stays through every token that says nothing of it', async () => {
    await world.statusOf(world.token('bob', ['users']))
    await add('staff', 'bob')
    const { granted_at: givenAt } = (await add('staff', 'bob')).body
    const later = Math.floor(world.now().getTime() / 1_000)
    for (const [index, groups] of [['users', 'crew'], ['users'], ['idlers', 'users']].entries()) {
      const token = world.token('bob', groups, { iat: later + index })
      expect((await world.rightsOf(token)).groups).toEqual([...groups, 'staff'].sort())
    }
    expect(await sourcesOf('staff', 'bob')).toEqual(['manual'])
    expect((await add('staff', 'bob')).body['granted_at']).toBe(givenAt)
  })

  test('is taken out once; the second time there is nobody', async () => {
    await world.statusOf(world.token('cy', ['users']))
    await add('staff', 'cy')
    expect(outcome(await remove('staff', 'cy'))).toBe('200')
    expect(outcome(await remove('staff', 'cy'))).toBe('404 not_found')
  })
})

describe('a member by token', () => {
  test('cannot be taken out by hand', async () => {
    await world.statusOf(world.token('dan', ['users', 'staff']))
    expect(outcome(await remove('staff', 'dan'))).toBe('409 idp_managed')
    expect(await sourcesOf('staff', 'dan')).toEqual(['idp'])
  })

  test('may be one by hand too, and each is told and taken away for itself', async () => {
    const token = world.token('eve', ['users', 'staff'])
    await world.statusOf(token)
    expect((await add('staff', 'eve')).body['sources']).toEqual(['idp', 'manual'])
    expect(outcome(await remove('staff', 'eve'))).toBe('200')
    expect(await sourcesOf('staff', 'eve')).toEqual(['idp'])
    await add('staff', 'eve')
    const later = Math.floor(world.now().getTime() / 1_000) + 1
    await world.statusOf(world.token('eve', ['users'], { iat: later }))
    expect(await sourcesOf('staff', 'eve')).toEqual(['manual'])
  })

  test('is one of the group that claims the word', async () => {
    await world.send('PATCH /v1/groups/crew', { json: { idp_claim: 'x-crew' } })
    await world.statusOf(world.token('fay', ['users', 'x-crew']))
    await world.statusOf(world.token('gus', ['users', 'crew']))
    expect(await sourcesOf('crew', 'fay')).toEqual(['idp'])
    expect(await sourcesOf('crew', 'gus')).toBeUndefined()
    expect((await world.send('GET /v1/groups/crew')).body['members']).toBe(1)
  })
})

test('a group and a user must be there', async () => {
  expect(outcome(await add('nobody', 'ann'))).toBe('404 not_found')
  expect(outcome(await add('staff', 'never seen'))).toBe('404 not_found')
  expect(outcome(await world.send('PUT /v1/groups/staff/members/x'))).toBe('404 not_found')
  expect(outcome(await remove('nobody', 'ann'))).toBe('404 not_found')
  expect(outcome(await world.send('GET /v1/groups/nobody/members'))).toBe('404 not_found')
  expect(outcome(await world.send('GET /v1/groups/%00/members'))).toBe('404 not_found')
})

test('the list goes page by page, and counts each once', async () => {
  await world.send('POST /v1/groups', { json: { name: 'many' } })
  const subjects = Array.from({ length: 5 }, (_, index) => `member ${index}`)
  for (const subject of subjects) {
    await world.statusOf(world.token(subject, ['users', 'many']))
    await add('many', subject)
  }
  const seen: unknown[] = []
  let after = ''
  for (let more = true; more; ) {
    const page = await world.send(`GET /v1/groups/many/members?limit=2${after}`)
    seen.push(...column(page, 'id'))
    more = page.body['has_more'] === true
    after = `&after=${page.body['last_id']}`
  }
  expect(seen).toEqual(subjects.map(userIdOf).toSorted())
  expect((await world.send('GET /v1/groups/many')).body['members']).toBe(5)
  expect(outcome(await world.send('GET /v1/groups/many/members?after=x'))).toBe('422 unprocessable')
})
