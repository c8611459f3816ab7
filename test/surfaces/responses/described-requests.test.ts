import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import { readAdd, readCreate, readUpdate } from '#surfaces/responses/conversation-schema.ts'
import { conversationOperations } from '#surfaces/responses/description/conversation-operations.ts'
import { responseOperations } from '#surfaces/responses/description/operations.ts'
import { createResponse } from '#surfaces/responses/description/request.ts'
import { bodyExample, bodySchema, isDescribed } from '#test/support/described-shapes.ts'
import { parse, refusalOf } from './parsing.ts'

/**
 * The description of a request against what is really taken. That whatever other tests send is
 * described is held by `parse` of `parsing.ts`.
 */

const user = { role: 'user', content: 'Hello' }
const call = { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' }
const custom = { type: 'custom_tool_call', call_id: 'a', name: 'look', input: 'x' }
const asked = { type: 'mcp_approval_request', server_label: 'docs', name: 'look', arguments: '{}' }
const request = { ...asked, id: 'r' }
const look = { type: 'function', name: 'look' }

/** Each kind of thing that a request may hold, and how a body is made of one. */
const wholes: [what: string, thing: JsonObject, bodyOf: (thing: JsonObject) => object][] = [
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
  ['mcp_approval_request', asked, (item) => ({ input: [user, { ...item, id: 'r' }] })],
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
    'the form of an answer',
    { type: 'json_schema', name: 'a', schema: { type: 'object' } },
    (format) => ({ text: { format } }),
  ],
  [
    'what is done with a long context',
    { type: 'compaction' },
    (entry) => ({ context_management: [entry] }),
  ],
]

const isTold = (fields: object) =>
  isDescribed(createResponse, { model: 'demo', input: 'Hello', ...fields })

describe('what is taken is described, and without any of its fields is neither', () => {
  test.each(wholes)('%s', (_, thing, bodyOf) => {
    parse(bodyOf(thing))
    expect(isTold(bodyOf(thing))).toBe(true)
    for (const field of Object.keys(thing)) {
      // A message need not say that it is one.
      if (field === 'type' && 'role' in thing) continue
      const { [field]: _, ...rest } = thing
      // What has nothing but an id is the name of another item, which is not there.
      expect(refusalOf(bodyOf(rest)).status, field).toBeOneOf([400, 404])
      expect(isTold(bodyOf(rest)), field).toBe(false)
    }
  })
})

test('the examples of bodies are taken', () => {
  for (const operation of Object.values(responseOperations)) {
    expect(parse(bodyExample(operation)).request.items).not.toEqual([])
  }
  const { create, addItems, update } = conversationOperations
  expect(readCreate(bodyExample(create)).items).toHaveLength(1)
  expect(readAdd(bodyExample(addItems))).toHaveLength(1)
  expect(readUpdate(bodyExample(update))).toEqual({ topic: 'gates' })
  expect(isDescribed(bodySchema(update), {})).toBe(false)
  expect(isDescribed(bodySchema(addItems), { items: [] })).toBe(false)
})

test('a field of another type is taken by nobody', () => {
  for (const field of Object.keys(createResponse.properties)) {
    const odd = isTold({ [field]: 7 }) ? 'x' : 7
    expect(isTold({ [field]: odd }), field).toBe(false)
    if (field !== 'conversation') expect(refusalOf({ [field]: odd }).param).toStartWith(field)
  }
})

test('null is as good as nothing for every field but the model', () => {
  const optional = Object.keys(createResponse.properties).filter((field) => field !== 'model')
  const nulls = Object.fromEntries(optional.map((field) => [field, null]))
  expect(isTold(nulls)).toBe(true)
  parse({ ...nulls, input: 'Hello' })
  expect(isTold({ model: null })).toBe(false)
})
