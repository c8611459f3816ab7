import { expect, test } from 'bun:test'
import { healthRoutes } from '#http/health.ts'
import { livenessOperation, readinessOperation } from '#http/health-operations.ts'
import { answerSchema, checkDescribed, checkExamples } from '#test/support/described-shapes.ts'

test.each([
  ['/livez', false, livenessOperation, 200],
  ['/livez', true, livenessOperation, 200],
  ['/readyz', false, readinessOperation, 200],
  ['/readyz', true, readinessOperation, 503],
])('%s answers as it is described (stopping: %p)', async (path, isStopping, operation, status) => {
  const app = healthRoutes({ draining: () => isStopping })
  const answer = await app.handle(new Request(`http://gateway${path}`))
  expect(answer.status).toBe(status)
  checkDescribed(answerSchema(operation, status), await answer.json())
  checkExamples(operation)
})
