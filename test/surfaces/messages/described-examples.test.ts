import { expect, test } from 'bun:test'
import { compatModelOperations } from '#surfaces/messages/description/model-operations.ts'
import { messageOperations } from '#surfaces/messages/description/operations.ts'
import { probeOperation } from '#surfaces/messages/description/probe-operation.ts'
import { checkExamples } from '#test/support/described-shapes.ts'

const all = [messageOperations, compatModelOperations, { probeOperation }]
const operations = all.flatMap((group) => Object.entries(group))

test.each(operations)('the examples of %s are as they are described', (_, operation) => {
  checkExamples(operation)
  expect(operation.summary).toMatch(/^[A-Z][^.]+$/)
})
