import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { type SettingsGateway, startSettingsGateway } from './settings-gateway.ts'

let database: TestDatabase
let gateway: SettingsGateway

const toml = `
[limits.default]
requests_per_minute = 60
[limits.group.staff]
requests_per_minute = 600
`

beforeAll(async () => {
  database = await openTestDatabase()
  gateway = await startSettingsGateway(database, { toml })
})
beforeEach(async () => {
  await gateway.send('/v1/config/rollback', { json: { revision: 0 } })
})
afterAll(async () => {
  await gateway.stop()
  await database.close()
})

/** As an administrator sees them. */
const limits = async () => Object((await gateway.send('/v1/config')).body).limits

test('a patch of one entry keeps the others, those of the file included', async () => {
  await gateway.patch({ limits: { group: { 'guests.of.x': { requests_per_minute: 6 } } } })
  await gateway.patch({ limits: { group: { 'guests.of.x': { concurrent_generations: 1 } } } })
  await gateway.patch({ limits: { default: { stored_bytes: 1_000 } } })
  expect(await limits()).toEqual({
    default: { requests_per_minute: 60, stored_bytes: 1_000 },
    group: {
      staff: { requests_per_minute: 600 },
      'guests.of.x': { requests_per_minute: 6, concurrent_generations: 1 },
    },
    user: {},
    model: {},
  })
})

test('null removes a field, an entry, or the whole change', async () => {
  await gateway.patch({
    limits: { default: { requests_per_minute: null }, group: { staff: null, guests: {} } },
  })
  expect(await limits()).toMatchObject({ default: {}, group: { guests: {} } })
  expect(Object(await limits()).group).not.toHaveProperty('staff')
  await gateway.patch({ limits: { group: null } })
  expect(Object(await limits()).group).toEqual({ staff: { requests_per_minute: 600 } })
})

test('the history has the merge patch of each change, and a rollback restores the values', async () => {
  await gateway.patch({ limits: { model: { big: { requests_per_minute: 5 } } } })
  const { body } = await gateway.send('/v1/config/history?limit=1')
  const { revision, patch } = Object(body).data[0]
  expect(patch).toEqual({ limits: { model: { big: { requests_per_minute: 5 } } } })
  await gateway.patch({ limits: { model: { big: null, small: { requests_per_minute: 1 } } } })
  const after = Object((await gateway.send('/v1/config/history?limit=1')).body).data[0]
  expect(after.patch).toEqual({
    limits: { model: { big: null, small: { requests_per_minute: 1 } } },
  })
  await gateway.send('/v1/config/rollback', { json: { revision } })
  expect(Object(await limits()).model).toEqual({ big: { requests_per_minute: 5 } })
})

test('an invalid field is refused by its path, and changes nothing', async () => {
  const refusals = [
    [{ limits: { group: { staff: { requests_per_minute: -1 } } } }, 'requests_per_minute'],
    [{ limits: { group: { staff: { requests_per_second: 1 } } } }, 'requests_per_second'],
    [{ limits: { default: { tokens: 1 } } }, 'limits.default.tokens'],
    [{ limits: { model: 5 } }, 'limits.model'],
    [{ budgets: { key: { k: { cost_per_day: 'much' } } } }, 'cost_per_day'],
  ] as const
  for (const [patch, param] of refusals) {
    const refused = await gateway.patch(patch)
    expect(refused.status).toBe(422)
    expect(Object(refused.body).error.param).toContain(param)
  }
  expect(await limits()).toMatchObject({ group: { staff: { requests_per_minute: 600 } } })
})

test('the schema names the file as the source, until an administrator changes the value', async () => {
  const sourceOf = async (key: string) =>
    Object(Object((await gateway.send('/v1/config/schema')).body).keys)[key].source
  expect(await sourceOf('limits.default')).toBe('file')
  expect(await sourceOf('limits.group')).toBe('file')
  expect(await sourceOf('limits.model')).toBe('default')
  await gateway.patch({ limits: { default: { stored_bytes: 5 } } })
  expect(await sourceOf('limits.default')).toBe('database')
})
