import { expect, test } from 'bun:test'
import { checkExamples } from '#test/support/described-shapes.ts'
import { surfaceOperations } from '#test/support/surface-operations.ts'

test.each(surfaceOperations.all)('the examples of %s match their schemas', (name, operation) => {
  // The examples of the socket are checked in test/docs/document.test.ts.
  if (name !== 'GET /v1/responses') checkExamples(operation)
  expect(operation.summary).toMatch(/^[A-Z][^.]+$/)
})
