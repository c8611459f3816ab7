import { expect, test } from 'bun:test'
import { conversationOperations } from '#surfaces/responses/description/conversation-operations.ts'
import { responseOperations } from '#surfaces/responses/description/operations.ts'
import { socketOperation } from '#surfaces/responses/description/socket-operation.ts'
import { storedOperations } from '#surfaces/responses/description/stored-operations.ts'
import { checkExamples } from '#test/support/described-shapes.ts'

const all = [responseOperations, storedOperations, conversationOperations, { socketOperation }]
const operations = all.flatMap((group) => Object.entries(group))

test.each(operations)('the examples of %s are as they are described', (_, operation) => {
  checkExamples(operation)
  expect(operation.summary).toMatch(/^[A-Z][^.]+$/)
})
