import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openTestDatabase } from '#test/support/database.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** Models go on without the database; agents wait for it. */

let gateway: Gateway
let agentName: string

beforeAll(async () => {
  const database = await openTestDatabase()
  gateway = await startGateway({ database })
  const made = await gateway.post('/v1/agents', { name: 'A', model: 'demo-fast' })
  agentName = Object(await made.json()).model_id
  await database.close()
})
afterAll(() => gateway.stop())

const ask = (model: string) => gateway.post('/v1/responses', { model, input: 'Hi', store: false })

test('a model is called', async () => {
  expect((await ask('demo-fast')).status).toBe(200)
  expect((await ask('vendor-model-demo-fast')).status).toBe(200)
  expect((await ask('nope')).status).toBe(404)
})

test('an agent is not reported as absent', async () => {
  const answer = await ask(agentName)
  expect(answer.status).toBe(503)
  expect(answer.headers.get('retry-after')).toBe('1')
})

test('the lists contain the models', async () => {
  for (const path of ['/v1/models', '/compat/v1/models']) {
    const answer = await gateway.request(path)
    expect(answer.status).toBe(200)
    const text = await answer.text()
    expect(text).toContain('demo-fast')
    expect(text).not.toContain(agentName)
  }
  expect(gateway.logLines.join('')).toContain('agents unavailable, listing models without them')
})

test('one model is shown', async () => {
  expect((await gateway.request('/v1/models/demo')).status).toBe(200)
  expect((await gateway.request(`/v1/models/${agentName}`)).status).toBe(503)
})
