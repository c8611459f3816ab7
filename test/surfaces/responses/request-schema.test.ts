import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import {
  readAddItems,
  readCreateConversation,
  readUpdateConversation,
} from '#surfaces/responses/parse-conversation.ts'
import { createResponse } from '#surfaces/responses/schema/request.ts'
import { bodyExample, bodySchema, isDescribed } from '#test/support/described-shapes.ts'
import { surfaceOperations } from '#test/support/surface-operations.ts'
import { parse, refusalOf } from './parsing.ts'

/**
 * The documented schema of a request accepts what the parser accepts. `parse` of `parsing.ts` checks
 * this for the requests of all other tests as well.
 */

const user = { role: 'user', content: 'Hello' }
const call = { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' }
const custom = { type: 'custom_tool_call', call_id: 'a', name: 'look', input: 'x' }
const approvalRequest = {
  type: 'mcp_approval_request',
  server_label: 'docs',
  name: 'look',
  arguments: '{}',
}
const request = { ...approvalRequest, id: 'r' }
const look = { type: 'function', name: 'look' }

/** Every kind of object in a request, and a body with it. */
const objects: [name: string, object: JsonObject, bodyOf: (object: JsonObject) => object][] = [
  ['message', { type: 'message', ...user }, (item) => ({ input: [item] })],
  ['function_call', call, (item) => ({ input: [item, user] })],
  ['custom_tool_call', custom, (item) => ({ input: [item, user] })],
  [
    'function_call_output',
    { type: 'function_call_output', call_id: 'a', output: 'x' },
    (item) => ({ input: [call, item] }),
  ],
  [
    'custom_tool_call_output',
    { type: 'custom_tool_call_output', call_id: 'a', output: 'x' },
    (item) => ({ input: [custom, item] }),
  ],
  [
    'mcp_list_tools',
    { type: 'mcp_list_tools', server_label: 'docs', tools: [] },
    (item) => ({ input: [item, user] }),
  ],
  [
    'mcp_call',
    { type: 'mcp_call', server_label: 'docs', name: 'look', arguments: '{}' },
    (item) => ({ input: [user, item] }),
  ],
  ['mcp_approval_request', approvalRequest, (item) => ({ input: [user, { ...item, id: 'r' }] })],
  [
    'mcp_approval_response',
    { type: 'mcp_approval_response', approval_request_id: 'r', approve: false },
    (item) => ({ input: [user, request, item] }),
  ],
  [
    'text',
    { type: 'input_text', text: 'x' },
    (part) => ({ input: [{ ...user, content: [part] }] }),
  ],
  [
    'image',
    { type: 'input_image', image_url: 'https://example.org/a.png' },
    (part) => ({ input: [{ ...user, content: [part] }] }),
  ],
  [
    'refusal',
    { type: 'refusal', refusal: 'No.' },
    (part) => ({ input: [user, { role: 'assistant', content: [part] }] }),
  ],
  ['function', look, (tool) => ({ tools: [tool] })],
  ['custom', { type: 'custom', name: 'look' }, (tool) => ({ tools: [tool] })],
  ['namespace', { type: 'namespace', name: 'eyes', tools: [look] }, (tool) => ({ tools: [tool] })],
  ['mcp', { type: 'mcp', server_label: 'docs' }, (tool) => ({ tools: [tool] })],
  ['file_search', { type: 'file_search', vector_store_ids: ['a'] }, (tool) => ({ tools: [tool] })],
  [
    'a forced tool',
    { type: 'function', name: 'look' },
    (choice) => ({ tools: [look], tool_choice: choice }),
  ],
  [
    'allowed tools',
    { type: 'allowed_tools', tools: [look] },
    (choice) => ({ tools: [look], tool_choice: choice }),
  ],
  [
    'an output format',
    { type: 'json_schema', name: 'a', schema: { type: 'object' } },
    (format) => ({ text: { format } }),
  ],
  [
    'an entry of context_management',
    { type: 'compaction' },
    (entry) => ({ context_management: [entry] }),
  ],
]

const isDocumented = (fields: object) =>
  isDescribed(createResponse, { model: 'demo', input: 'Hello', ...fields })

describe('the parser and the schema accept the object, and refuse it without any of its fields', () => {
  test.each(objects)('%s', (_, object, bodyOf) => {
    parse(bodyOf(object))
    expect(isDocumented(bodyOf(object))).toBe(true)
    for (const field of Object.keys(object)) {
      // The type of a message is optional.
      if (field === 'type' && 'role' in object) continue
      // An image has an address or the id of a file.
      if (field === 'image_url') continue
      const { [field]: _, ...rest } = object
      // An object with only an id is a reference to an item, which does not exist.
      expect(refusalOf(bodyOf(rest)).status, field).toBeOneOf([400, 404])
      expect(isDocumented(bodyOf(rest)), field).toBe(false)
    }
  })
})

test('the parser accepts the example bodies', () => {
  const { at } = surfaceOperations
  for (const path of ['', '/input_tokens', '/compact']) {
    const body = bodyExample(at(`POST /v1/responses${path}`))
    expect(parse(body).request.items).not.toEqual([])
  }
  const create = at('POST /v1/conversations')
  const update = at('POST /v1/conversations/:id')
  const addItems = at('POST /v1/conversations/:id/items')
  expect(readCreateConversation(bodyExample(create)).items).toHaveLength(1)
  expect(readAddItems(bodyExample(addItems))).toHaveLength(1)
  expect(readUpdateConversation(bodyExample(update))).toEqual({ topic: 'gates' })
  expect(isDescribed(bodySchema(update), {})).toBe(false)
  expect(isDescribed(bodySchema(addItems), { items: [] })).toBe(false)
})

test('neither accepts a field of another type', () => {
  for (const field of Object.keys(createResponse.properties)) {
    const odd = isDocumented({ [field]: 7 }) ? 'x' : 7
    expect(isDocumented({ [field]: odd }), field).toBe(false)
    if (field !== 'conversation') expect(refusalOf({ [field]: odd }).param).toStartWith(field)
  }
})

test('null counts as absent for every field except the model', () => {
  const optional = Object.keys(createResponse.properties).filter((field) => field !== 'model')
  const nulls = Object.fromEntries(optional.map((field) => [field, null]))
  expect(isDocumented(nulls)).toBe(true)
  parse({ ...nulls, input: 'Hello' })
  expect(isDocumented({ model: null })).toBe(false)
})
