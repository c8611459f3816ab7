import { afterAll, beforeAll, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** The database is reachable, but accepts no writes. */

let database: TestDatabase
let gateway: Gateway
let failing = false

beforeAll(async () => {
  database = await openTestDatabase()
  const reject = () => Promise.reject(new Error('the disk is full'))
  const drizzle = new Proxy(database.drizzle, {
    get(target, name, receiver) {
      if (!failing || name !== 'transaction') return Reflect.get(target, name, receiver)
      return reject
    },
  })
  const { executePrepared } = database
  gateway = await startGateway({
    database: {
      ...database,
      drizzle,
      executePrepared: (statement) => (failing ? reject() : executePrepared(statement)),
    },
    responses: { storeWaitMs: 20 },
  })
  failing = true
})
afterAll(async () => {
  failing = false
  await gateway.stop()
  await database.close()
})

const ask = (fields: object) =>
  gateway.post('/v1/responses', { model: 'demo', input: 'Hi.', ...fields })

async function expectRefused(id: unknown): Promise<void> {
  for (const query of ['', '?stream=true']) {
    const answer = await gateway.request(`/v1/responses/${id}${query}`)
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ error: { code: 'response_not_stored' } })
  }
}

test('a response without streaming says so in a header, and retrieving it in a code', async () => {
  const answer = await ask({})
  expect(answer.headers.get('x-sluice-warning')).toBe('response_not_stored')
  const response = asRecord(await answer.json())
  expect(response).toMatchObject({ status: 'completed', store: false })
  await expectRefused(response['id'])
})

test('a stream says so in its last event', async () => {
  const text = await (await ask({ stream: true })).text()
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json ?? ''))
  expect(events[0]).toMatchObject({ type: 'response.created', response: { store: true } })
  expect(events.at(-1)).toMatchObject({
    type: 'response.completed',
    warning: { code: 'response_not_stored' },
    response: { status: 'completed', store: false },
  })
  await expectRefused(events[0].response.id)
})

test('a response that asked for no storage has no warning', async () => {
  const answer = await ask({ store: false })
  expect(answer.headers.get('x-sluice-warning')).toBeNull()
  const text = await (await ask({ store: false, stream: true })).text()
  expect(text).not.toContain('response_not_stored')
})
