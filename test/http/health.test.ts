import { expect, test } from 'bun:test'
import { databaseEndpoints } from '#operations/database-endpoints.ts'
import { watchDatabase } from '#operations/database-report.ts'
import { operationsEndpoints } from '#operations/endpoints.ts'
import { answerSchema, checkDescribed, checkExamples } from '#test/support/described-shapes.ts'
import { createTestApp, operationsOf, publicOnly } from '#test/support/endpoints.ts'

test.each([
  ['/livez', false, 200],
  ['/livez', true, 200],
  ['/readyz', false, 200],
  ['/readyz', true, 503],
])('%s responds as documented (stopping: %p)', async (path, isStopping, status) => {
  const endpoints = operationsEndpoints({
    config: { metrics: {} },
    scrapeMetrics: async () => '',
    draining: () => isStopping,
  })
  const app = createTestApp(endpoints, publicOnly)
  const response = await app.handle(new Request(`http://gateway${path}`))
  expect(response.status).toBe(status)
  const operation = operationsOf(operationsEndpoints).at(`GET ${path}`)
  checkDescribed(answerSchema(operation, status), await response.json())
  checkExamples(operation)
})

test.each([
  ['responds', async () => {}, { state: 'available', ping_ms: expect.any(Number) }],
  ['is away', () => Promise.reject(new Error('away')), { state: 'unavailable', ping_ms: null }],
])('a database that %s is described as such', async (_, ping, expected) => {
  const databaseHealth = watchDatabase({ kind: 'postgres', ping })
  const [check] = databaseEndpoints({ databaseHealth })
  expect(await check?.handle({} as never)).toMatchObject({ kind: 'postgres', ...expected })
})
