import { expect, test } from 'bun:test'
import { checkExamples } from '#test/support/described-shapes.ts'
import { surfaceOperations } from '#test/support/surface-operations.ts'

// Those of a socket stand in descriptions.
const answering = surfaceOperations.all.filter(([name]) => name !== 'GET /v1/responses')

test.each(answering)('the examples of %s match their schemas', (_, operation) => {
  checkExamples(operation)
  expect(operation.summary).toMatch(/^[A-Z][^.]+$/)
})
