import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { endpoint, jsonBody } from '#api/endpoint.ts'
import { loadConfig } from '#config/load.ts'
import { describeEndpoint } from '#docs/describe-endpoint.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { createTestApp } from '#test/support/endpoints.ts'
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

const checked = endpoint({
  method: 'POST',
  path: '/checked',
  permission: 'can_access_api',
  tag: 'Operations',
  summary: 'Check',
  query: Type.Object({ size: Type.Integer({ minimum: 1, maximum: 9 }) }),
  body: jsonBody(Type.Object({ name: Type.String() }, { additionalProperties: false }), {
    example: { name: 'a' },
  }),
  responses: { 201: { description: 'Checked.' } },
  handle: ({ query, body }) => ({ size: query.size + 1, name: body.name }),
})
const tokenOnly = endpoint({
  method: 'POST',
  path: '/token-only',
  permission: 'can_access_api',
  credential: 'jwt',
  tag: 'Operations',
  summary: 'Require a token',
  body: jsonBody(Type.Object({}), { example: {} }),
  responses: { 200: { description: 'Done.' } },
  handle: () => ({}),
})

test('the permission of an endpoint is part of its operation', () => {
  expect(describeEndpoint(checked)).toMatchObject({ 'x-permission': 'can_access_api' })
  expect(describeEndpoint(tokenOnly).responses).toHaveProperty('403')
})

test('input is validated after authorisation, and the handler gets typed input', async () => {
  const { auth, config } = world
  const app = createTestApp([checked, tokenOnly], {
    auth,
    config: { ...loadConfig({}), ...config },
  })
  app.listen({ hostname: '127.0.0.1', port: 0 })
  const ask = async (path: string, headers: Record<string, string>, body: string) => {
    const url = new URL(path, app.server?.url)
    const response = await fetch(url, { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  }
  const bearer = (groups: string[]) => ({ authorization: `Bearer ${world.token('ann', groups)}` })
  expect(await ask('/checked?size=x', {}, '{')).toMatchObject({ status: 401 })
  expect(await ask('/checked?size=x', bearer([]), '{')).toMatchObject({ status: 403 })
  const users = bearer(['users'])
  const badQuery = await ask('/checked?size=x', users, '{')
  expect(badQuery.status).toBe(422)
  expect(badQuery.text).toContain('must be a whole number from 1 to 9.')
  expect(await ask('/checked?size=2', users, '{')).toMatchObject({ status: 400 })
  expect((await ask('/checked?size=2', users, '{"name":1}')).status).toBe(422)
  const unknown = await ask('/checked?size=2', users, '{"name":"a","nmae":"b"}')
  expect(unknown.text).toContain('unknown_field')
  const done = await ask('/checked?size=2', users, '{"name":"a"}')
  expect([done.status, JSON.parse(done.text)]).toEqual([201, { size: 3, name: 'a' }])

  const { key } = await world.makeKey('ann', ['users'])
  const refused = await ask('/token-only', { 'x-api-key': key }, '{')
  expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('jwt_required')])
  expect((await ask('/token-only', users, '{}')).status).toBe(200)
  await app.stop(true)
})
