import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createGroupRights } from '#auth/groups.ts'
import { userIdOf } from '#auth/principal.ts'
import { createAuthStore } from '#auth/store.ts'
import { openTestDatabase } from '#test/support/database.ts'
import { createDice } from '#test/support/dice.ts'
import { eventually } from '#test/support/eventually.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { makeKey, outcome, startReplicas } from './directory-gateway.ts'

describe('mapping of claim values to groups', () => {
  let two: Awaited<ReturnType<typeof startReplicas>>
  beforeAll(async () => {
    two = await startReplicas()
  })
  afterAll(() => two.stop())

  const change = (name: string, json: unknown) =>
    two.here.send(`PATCH /v1/groups/${name}`, { json })
  const create = (json: unknown) => two.here.send('POST /v1/groups', { json })

  test('a claim value maps to the group of that name; an unknown value grants nothing', async () => {
    const token = two.here.token('ann', ['users', 'strangers'])
    expect(await two.here.rightsOf(token)).toEqual({
      groups: ['strangers', 'users'],
      permissions: ['can_access_api'],
    })
  })

  test('a new idp_claim applies to tokens and keys immediately, on every replica', async () => {
    const { here, there } = two
    const token = here.token('bob', ['users', 'x-42'])
    const { key } = await makeKey(here, token)
    for (const gateway of [here, there]) {
      for (const bearer of [token, key]) {
        expect((await gateway.rightsOf(bearer)).groups).toEqual(['users', 'x-42'])
      }
    }
    await create({ name: 'mapped', permissions: ['can_manage_models'], idp_claim: 'x-42' })
    const mapped = {
      groups: ['mapped', 'users'],
      permissions: ['can_access_api', 'can_manage_models'],
    }
    expect(await here.rightsOf(token)).toEqual(mapped)
    expect(await here.rightsOf(key)).toEqual(mapped)
    for (const bearer of [token, key]) {
      await eventually('the other replica has heard of it', async () =>
        Bun.deepEquals(await there.rightsOf(bearer), mapped),
      )
    }
    await change('mapped', { permissions: [] })
    expect((await here.rightsOf(token)).permissions).toEqual(['can_access_api'])
    await eventually('the other replica has heard of that too', async () =>
      Bun.deepEquals((await there.rightsOf(key)).permissions, ['can_access_api']),
    )
  })

  test('a group with another idp_claim no longer maps by its name', async () => {
    await create({ name: 'team', permissions: ['can_edit_config'] })
    const token = two.here.token('cy', ['users', 'team'])
    expect((await two.here.rightsOf(token)).groups).toEqual(['team', 'users'])
    await change('team', { idp_claim: 'the-team' })
    expect((await two.here.rightsOf(token)).groups).toEqual(['users'])
    await change('team', { idp_claim: null })
    expect((await two.here.rightsOf(token)).groups).toEqual(['team', 'users'])
  })

  test('a deleted group grants nothing, by manual membership or token', async () => {
    const { here, there } = two
    await create({ name: 'short', permissions: ['can_edit_config'] })
    const byToken = here.token('dan', ['users', 'short'])
    const byHand = here.token('eve', ['users'])
    await here.statusOf(byHand)
    await here.send(`PUT /v1/groups/short/members/${userIdOf('eve')}`)
    await eventually('both replicas know what was given by hand', async () => {
      const rights = await Promise.all([here, there].map((gateway) => gateway.rightsOf(byHand)))
      return rights.every(({ groups }) => groups.includes('short'))
    })
    expect(outcome(await here.send('DELETE /v1/groups/short'))).toBe('200')
    expect((await here.rightsOf(byToken)).permissions).toEqual(['can_access_api'])
    expect(await here.rightsOf(byHand)).toEqual({
      groups: ['users'],
      permissions: ['can_access_api'],
    })
    await eventually('the other replica has heard of it', async () =>
      Bun.deepEquals((await there.rightsOf(byHand)).groups, ['users']),
    )
    await create({ name: 'short', permissions: ['can_edit_config'] })
    expect((await here.rightsOf(byHand)).groups).toEqual(['users'])
    expect((await here.rightsOf(byToken)).groups).toEqual(['short', 'users'])
  })

  test('a new permission reaches the shipped administrators of an existing database once', async () => {
    const database = await openTestDatabase()
    const store = createAuthStore(database)
    const adminPermissions = async () =>
      (await store.loadGroups()).find(({ name }) => name === 'admins')?.permissions
    const before = ['can_access_api', 'can_manage_groups'] as const
    const after = [...before, 'can_manage_models'] as const
    await store.seedGroups({ admins: before }, {})
    expect(await adminPermissions()).toEqual([...before])
    await store.seedGroups({ admins: after }, {})
    expect(await adminPermissions()).toEqual([...after])
    // An administrator takes it away on purpose; the next start does not give it back.
    await database.drizzle.execute(
      `update app_group set permissions = '{can_access_api,can_manage_groups}'`,
    )
    await store.seedGroups({ admins: after }, {})
    expect(await adminPermissions()).toEqual([...before])
    await database.close()
  })

  test('configured administrators get no permission beyond their configuration', async () => {
    const database = await openTestDatabase()
    const store = createAuthStore(database)
    const configured = { admins: ['can_access_api', 'can_manage_groups'] } as const
    await store.seedGroups({ admins: ['can_access_api', 'can_manage_models'] }, configured)
    expect(await store.loadGroups()).toMatchObject([{ permissions: [...configured.admins] }])
    await database.close()
  })

  test('existing administrators get can_manage_groups at the next start', async () => {
    const database = await openTestDatabase()
    const store = createAuthStore(database)
    const permissionsOf = async () =>
      Object.fromEntries(
        (await store.loadGroups()).map(({ name, permissions }) => [name, permissions]),
      )
    await store.seedGroups({ admins: ['can_access_api'] }, {})
    expect(await permissionsOf()).toEqual({ admins: ['can_access_api', 'can_manage_groups'] })
    await store.seedGroups({ admins: [] }, { staff: ['can_manage_groups'], admins: [] })
    await store.seedGroups({ admins: [] }, {})
    expect(await permissionsOf()).toEqual({ admins: [], staff: ['can_manage_groups'] })
    await database.close()
  })
})

test('the database view and the in-memory mapping agree on every claim value', async () => {
  const database = await openTestDatabase()
  const { upTo } = createDice(7)
  const names = ['a', 'b', 'c', 'd', 'e']
  const pick = () => names[upTo(names.length)] ?? 'a'
  for (let round = 0; round < 40; round++) {
    await database.drizzle.execute('delete from group_member')
    await database.drizzle.execute('delete from app_group')
    const claims = new Set<string>()
    for (const name of names.filter(() => upTo(2) === 0)) {
      const claim = upTo(2) === 0 ? null : pick()
      const isTaken = claim !== null && claims.has(claim)
      if (claim !== null) claims.add(claim)
      await database.drizzle.execute(
        `insert into app_group (name, permissions, idp_claim)
         values ('${name}', '{}', ${claim === null || isTaken ? 'null' : `'${claim}'`})`,
      )
    }
    await database.drizzle.execute(
      `insert into app_user (id, subject) values ('${userIdOf('ann')}', 'ann') on conflict do nothing`,
    )
    const idpGroups = names.filter(() => upTo(2) === 0)
    const manual = names.filter(() => upTo(4) === 0)
    for (const [list, source] of [
      [idpGroups, 'idp'],
      [manual, 'manual'],
    ] as const) {
      for (const name of list) {
        await database.drizzle.execute(
          `insert into group_member (user_id, group_name, source)
           values ('${userIdOf('ann')}', '${name}', '${source}')`,
        )
      }
    }
    const rows = await database.drizzle.execute<{ name: string }>(
      'select distinct group_name as name from user_group order by 1',
    )
    const rights = await createGroupRights({
      load: createAuthStore(database).loadGroups,
      log: quietLog,
    })
    expect(rights.of({ idpGroups, manual }).groups).toEqual(rows.map(({ name }) => name))
  }
  await database.close()
})
