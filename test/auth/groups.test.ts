import { expect, test } from 'bun:test'
import { createGroupRights } from '#auth/groups.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** The groups of principals while the table changes. Its reads are completed by hand. */
type Rows = { name: string; permissions: string[]; idpClaim: string | null }[]

const staff = (...permissions: string[]): Rows => [{ name: 'staff', permissions, idpClaim: null }]
const member = { idpGroups: ['staff'], manual: [] }

async function start(rows: Rows) {
  const reads: PromiseWithResolvers<Rows>[] = []
  const load = () => {
    const read = Promise.withResolvers<Rows>()
    reads.push(read)
    return read.promise
  }
  const created = createGroupRights({ load, log: quietLog })
  reads[0]?.resolve(rows)
  const rights = await created
  return { rights, reads, held: () => [...rights.of(member).permissions] }
}

test('a claim value is the group that it is mapped to, or else the unmapped group of its name', async () => {
  const { rights } = await start([
    { name: 'editors', permissions: ['can_edit_config', 'can_fly'], idpClaim: 'idp-editors' },
    { name: 'users', permissions: ['can_access_api'], idpClaim: null },
  ])
  const of = (...idpGroups: string[]) => {
    const { groups, permissions } = rights.of({ idpGroups, manual: [] })
    return [groups, [...permissions]]
  }
  expect(of('idp-editors')).toEqual([['editors'], ['can_edit_config']])
  expect(of('editors')).toEqual([[], []])
  expect(of('users', 'unheard of')).toEqual([['unheard of', 'users'], ['can_access_api']])
  const both = rights.of({ idpGroups: ['users'], manual: ['users', 'editors'] })
  expect(both.groups).toEqual(['editors', 'users'])
})

test('a membership has new rights after a reload, and the same object until then', async () => {
  const { rights, reads, held } = await start(staff('can_access_api'))
  expect(rights.of(member)).toBe(rights.of(member))
  expect(held()).toEqual(['can_access_api'])
  const reload = rights.reload()
  expect(held()).toEqual(['can_access_api'])
  reads[1]?.resolve(staff())
  await reload
  expect(held()).toEqual([])
})

test('a failed reload leaves the rights as they are', async () => {
  const { rights, reads, held } = await start(staff('can_access_api'))
  const reload = rights.reload()
  reads[1]?.reject(new Error('the database is away'))
  await reload
  expect(held()).toEqual(['can_access_api'])
})

test('a reload that a later one overtook changes nothing and ends with it', async () => {
  const { rights, reads, held } = await start(staff('can_access_api'))
  const early = rights.reload()
  let isEarlyOver = false
  void early.then(() => {
    isEarlyOver = true
  })
  const late = rights.reload()
  reads[1]?.resolve(staff('can_access_api', 'can_edit_config'))
  await Bun.sleep(1)
  expect([held(), isEarlyOver]).toEqual([['can_access_api'], false])
  reads[2]?.resolve(staff())
  await Promise.all([early, late])
  expect(held()).toEqual([])
})
