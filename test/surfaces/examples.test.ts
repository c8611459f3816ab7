import { expect, test } from 'bun:test'
import { checkExamples } from '#test/support/described-shapes.ts'
import { surfaceOperations } from '#test/support/surface-operations.ts'

test.each(surfaceOperations.all)('the examples of %s match their schemas', (_, operation) => {
  checkExamples(operation)
  expect(operation.summary).toMatch(/^[A-Z][^.]+$/)
})
