import { expect, test } from 'bun:test'
import { agentEndpoints } from '#agents/endpoints.ts'
import { agentChange, newAgent } from '#agents/schema.ts'
import { checkExamples, isDescribed } from '#test/support/described-shapes.ts'
import { operationsOf } from '#test/support/endpoints.ts'

test.each(operationsOf(agentEndpoints).all)(
  'the examples of %s match their schemas',
  (_, operation) => {
    checkExamples(operation)
  },
)

test('only a new agent requires a name and a model', () => {
  const fields = { name: 'A', model: 'demo' }
  expect(isDescribed(newAgent, fields)).toBe(true)
  for (const field of Object.keys(fields)) {
    expect(isDescribed(newAgent, { ...fields, [field]: undefined }), field).toBe(false)
    expect(isDescribed(agentChange, { ...fields, [field]: undefined }), field).toBe(true)
  }
})

test.each([
  [{ colour: 'red' }],
  [{ name: '' }],
  [{ tools: [{ type: 'web' }] }],
  [{ tools: [{ type: 'function', name: 'a b' }] }],
  [{ tools: [{ type: 'mcp', server_label: 'docs', server_url: 'http://x' }] }],
  [{ sampling: { seed: 1 } }],
  [{ visibility: { kind: 'world' } }],
])('%j is not a valid change', (fields) => {
  expect(isDescribed(agentChange, fields)).toBe(false)
})
