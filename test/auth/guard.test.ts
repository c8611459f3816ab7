import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Elysia, t } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { startWorld, type World } from './world.ts'

let database: TestDatabase
let world: World

beforeAll(async () => {
  database = await openTestDatabase()
  world = await startWorld(database)
})

afterAll(async () => {
  await world.close()
  await database.close()
})

function feature(auth: Auth) {
  return new Elysia({ prefix: '/feature' })
    .use(guard(auth))
    .get('/', () => 'closed', {
      requires: 'can_manage_models',
      detail: { tags: ['Feature'], summary: 'A sentence' },
    })
    .get('/checked', () => 'closed', {
      requires: 'can_access_api',
      query: t.Object({ size: t.Numeric() }),
    })
    .ws('/socket', { requires: 'can_edit_config' })
    .get('/open', () => 'open')
}

test('a permission stands in the table of routes, beside what the route says itself', () => {
  const app = new Elysia().use(feature(world.auth))
  const table = app.routes.map(({ method, path, hooks }) => ({ method, path, ...hooks.detail }))
  expect(table).toEqual([
    {
      method: 'GET',
      path: '/feature/',
      tags: ['Feature'],
      summary: 'A sentence',
      'x-permission': 'can_manage_models',
    },
    {
      method: 'GET',
      path: '/feature/checked',
      'x-permission': 'can_access_api',
    },
    {
      method: 'WS',
      path: '/feature/socket',
      'x-permission': 'can_edit_config',
    },
    { method: 'GET', path: '/feature/open' },
  ])
})

test('a stranger learns nothing from the validation of a query', async () => {
  const app = new Elysia().use(feature(world.auth)).listen(0)
  const ask = async (bearer?: string) => {
    const url = new URL('/feature/checked?size=x', app.server?.url)
    const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    return (await fetch(url, { headers })).text()
  }
  expect(await ask()).toContain('Send a credential')
  expect(await ask(world.token('ann', []))).toContain('can_access_api')
  expect(await ask(world.token('ann', ['users']))).toContain('Expected')
  await app.stop(true)
})
