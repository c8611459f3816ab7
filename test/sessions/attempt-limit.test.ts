import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { loginAttempt } from '#db/schema/sessions.ts'
import { createAttemptLimit } from '#sessions/attempt-limit.ts'
import { createAttemptStore } from '#sessions/attempt-store.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

let database: TestDatabase
let replicas: readonly Gateway[]

beforeAll(async () => {
  database = await openTestDatabase()
  replicas = [await startGateway({ database }), await startGateway({ database })]
})
afterAll(async () => {
  for (const replica of replicas) await replica.stop()
  await database.close()
})

/** So many logins at each replica, all at the same time; their statuses. */
function logInAtAll(times: number, body: object): Promise<number[]> {
  const logIns = replicas.map(async ({ url }) => {
    const headers = { 'content-type': 'application/json', 'x-sluice-csrf': '1', origin: url }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const send = async () => (await fetch(`${url}/v1/session`, init)).status
    return Promise.all(Array.from({ length: times }, send))
  })
  return Promise.all(logIns).then((statuses) => statuses.flat())
}

test('concurrent failed logins of an address are counted together, and valid ones do not count', async () => {
  const valid = { token: await replicas[0]?.token() }
  expect(await logInAtAll(2, valid)).toEqual([201, 201, 201, 201])
  const statuses = await logInAtAll(20, { code: 'wrong' })
  expect(statuses.toSorted()).toEqual([...Array(30).fill(401), ...Array(10).fill(429)])
  expect(await logInAtAll(1, valid)).toEqual([429, 429])
})

test('attempts are counted for a bounded number of clients, and windows that have ended are deleted', async () => {
  const clients = Array.from({ length: 250 }, (_, index) => `client ${index}`)
  const attemptAll = async (windowMs: number) => {
    const store = createAttemptStore(database)
    const sweep = () => store.sweep(50)
    const limited = { store: { ...store, sweep }, kind: 'test', attemptsMax: 1, windowMs }
    const limit = createAttemptLimit(limited)
    for (const client of clients) await limit.take(client)
    return database.drizzle.$count(loginAttempt)
  }
  expect(await attemptAll(3_600_000)).toBe(100)
  await database.drizzle.update(loginAttempt).set({ endsAt: sql`clock_timestamp()` })
  expect(await attemptAll(1)).toBeLessThan(100)
})
