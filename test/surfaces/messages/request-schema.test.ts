import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import { parseCountTokens } from '#surfaces/messages/parse.ts'
import { createMessage } from '#surfaces/messages/schema/request.ts'
import { bodyExample, isDescribed } from '#test/support/described-shapes.ts'
import { surfaceOperations } from '#test/support/surface-operations.ts'
import { contextWith, parse, refusalOf, text, toolUse } from './parsing.ts'

/**
 * The documented schema of a request accepts what the parser accepts. `parse` of `parsing.ts` checks
 * this for the requests of all other tests as well.
 */

/** A kind of object in a request, and a body with it. */
type RequestObject = [name: string, object: JsonObject, bodyOf: (object: JsonObject) => object]

const user = (...content: unknown[]) => ({ role: 'user', content })
const assistant = (...content: unknown[]) => ({ role: 'assistant', content })
const question = user(text('Hello'))
const look = { name: 'look', input_schema: { type: 'object' } }
const base64 = { type: 'base64', data: 'iVBORw0KGgo=' }
const fromUser = (block: JsonObject) => ({ messages: [user(block, text('And?'))] })
const fromAssistant = (block: JsonObject) => ({ messages: [question, assistant(block), question] })
const call = (block: JsonObject) => ({
  messages: [
    question,
    assistant(block),
    user({ type: 'tool_result', tool_use_id: 'a', content: 'x' }),
  ],
})

const objects: RequestObject[] = [
  ['a message', { role: 'user', content: 'Hello' }, (message) => ({ messages: [message] })],
  ['text', text('Hello'), fromUser],
  ['an image', { type: 'image', source: { ...base64, media_type: 'image/png' } }, fromUser],
  ['a document', { type: 'document', source: { type: 'text', data: 'x' } }, fromUser],
  [
    'the source of a document',
    { ...base64, media_type: 'application/pdf' },
    (source) => fromUser({ type: 'document', source }),
  ],
  [
    'a search result',
    { type: 'search_result', source: 's', title: 't', content: [text('x')] },
    fromUser,
  ],
  ['a reference to a tool', { type: 'tool_reference', tool_name: 'look' }, fromUser],
  [
    'a result',
    { type: 'tool_result', tool_use_id: 'a' },
    (block) => ({ messages: [question, assistant(toolUse('a')), user(block)] }),
  ],
  ['thinking', { type: 'thinking', thinking: 'Hm.' }, fromAssistant],
  ['redacted thinking', { type: 'redacted_thinking', data: 'x' }, fromAssistant],
  ['a call', { type: 'tool_use', id: 'a', name: 'look' }, call],
  ['a server tool call', { type: 'server_tool_use', id: 'a', name: 'look' }, fromAssistant],
  ['its result', { type: 'web_search_tool_result', tool_use_id: 'a' }, fromAssistant],
  ['a tool', look, (tool) => ({ tools: [tool] })],
  [
    'a forced tool',
    { type: 'tool', name: 'look' },
    (choice) => ({ tools: [look], tool_choice: choice }),
  ],
  ['a budget', { type: 'enabled', budget_tokens: 1024 }, (thinking) => ({ thinking })],
  [
    'an output format',
    { type: 'json_schema', schema: { type: 'object' } },
    (format) => ({ output_config: { format } }),
  ],
]

const isDocumented = (fields: object) =>
  isDescribed(createMessage, { model: 'demo', max_tokens: 100, messages: [question], ...fields })

describe('the parser and the schema accept the object, and refuse it without any of its fields', () => {
  test.each(objects)('%s', (_, object, bodyOf) => {
    parse(bodyOf(object))
    expect(isDocumented(bodyOf(object))).toBe(true)
    for (const field of Object.keys(object)) {
      const { [field]: _, ...rest } = object
      expect(refusalOf(bodyOf(rest)), field).toMatch(/./)
      expect(isDocumented(bodyOf(rest)), field).toBe(false)
    }
  })
})

test('the parser accepts the example bodies', () => {
  const create = bodyExample(surfaceOperations.at('POST /compat/v1/messages'))
  const count = bodyExample(surfaceOperations.at('POST /compat/v1/messages/count_tokens'))
  expect(parse(create).request.items).toHaveLength(1)
  expect(parseCountTokens(count, contextWith()).request.items).toHaveLength(1)
})

test('neither accepts a field of another type', () => {
  for (const field of Object.keys(createMessage.properties)) {
    const odd = isDocumented({ [field]: 7 }) ? 'x' : 7
    expect(isDocumented({ [field]: odd }), field).toBe(false)
    expect(refusalOf({ [field]: odd }), field).toStartWith(field)
  }
})

test('null counts as absent for every optional field', () => {
  const needed: readonly string[] = createMessage.required ?? []
  expect(needed).toEqual(['model', 'messages', 'max_tokens'])
  const optional = Object.keys(createMessage.properties).filter((field) => !needed.includes(field))
  const nulls = Object.fromEntries(optional.map((field) => [field, null]))
  parse(nulls)
  expect(isDocumented(nulls)).toBe(true)
  for (const field of needed) {
    expect(isDocumented({ [field]: null }), field).toBe(false)
    expect(refusalOf({ [field]: null })).toBe(`${field}: is required`)
  }
})
