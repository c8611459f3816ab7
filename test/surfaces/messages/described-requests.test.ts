import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import { messageOperations } from '#surfaces/messages/description/operations.ts'
import { createMessage } from '#surfaces/messages/description/request.ts'
import { parseCountTokens } from '#surfaces/messages/parse.ts'
import { bodyExample, isDescribed } from '#test/support/described-shapes.ts'
import { contextWith, parse, refusalOf, text, toolUse } from './parsing.ts'

/**
 * The description of a request against what is really taken. That whatever other tests send is
 * described is held by `parse` of `parsing.ts`.
 */

type Whole = [what: string, thing: JsonObject, bodyOf: (thing: JsonObject) => object]

const user = (...content: unknown[]) => ({ role: 'user', content })
const assistant = (...content: unknown[]) => ({ role: 'assistant', content })
const asked = user(text('Hello'))
const look = { name: 'look', input_schema: { type: 'object' } }
const base64 = { type: 'base64', data: 'iVBORw0KGgo=' }
const fromUser = (block: JsonObject) => ({ messages: [user(block, text('And?'))] })
const fromAssistant = (block: JsonObject) => ({ messages: [asked, assistant(block), asked] })
const call = (block: JsonObject) => ({
  messages: [
    asked,
    assistant(block),
    user({ type: 'tool_result', tool_use_id: 'a', content: 'x' }),
  ],
})

const wholes: Whole[] = [
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
    (block) => ({ messages: [asked, assistant(toolUse('a')), user(block)] }),
  ],
  ['thinking', { type: 'thinking', thinking: 'Hm.' }, fromAssistant],
  ['redacted thinking', { type: 'redacted_thinking', data: 'x' }, fromAssistant],
  ['a call', { type: 'tool_use', id: 'a', name: 'look' }, call],
  ['a call that ran before', { type: 'server_tool_use', id: 'a', name: 'look' }, fromAssistant],
  ['its result', { type: 'web_search_tool_result', tool_use_id: 'a' }, fromAssistant],
  ['a tool', look, (tool) => ({ tools: [tool] })],
  [
    'a forced tool',
    { type: 'tool', name: 'look' },
    (choice) => ({ tools: [look], tool_choice: choice }),
  ],
  ['a budget', { type: 'enabled', budget_tokens: 1024 }, (thinking) => ({ thinking })],
  [
    'the form of an answer',
    { type: 'json_schema', schema: { type: 'object' } },
    (format) => ({ output_config: { format } }),
  ],
]

const isTold = (fields: object) =>
  isDescribed(createMessage, { model: 'demo', max_tokens: 100, messages: [asked], ...fields })

describe('what is taken is described, and without any of its fields is neither', () => {
  test.each(wholes)('%s', (_, thing, bodyOf) => {
    parse(bodyOf(thing))
    expect(isTold(bodyOf(thing))).toBe(true)
    for (const field of Object.keys(thing)) {
      const { [field]: _, ...rest } = thing
      expect(refusalOf(bodyOf(rest)), field).toMatch(/./)
      expect(isTold(bodyOf(rest)), field).toBe(false)
    }
  })
})

test('the examples of bodies are taken', () => {
  const { create, countTokens } = messageOperations
  expect(parse(bodyExample(create)).request.items).toHaveLength(1)
  expect(parseCountTokens(bodyExample(countTokens), contextWith()).items).toHaveLength(1)
})

test('a field of another type is taken by nobody', () => {
  for (const field of Object.keys(createMessage.properties)) {
    const odd = isTold({ [field]: 7 }) ? 'x' : 7
    expect(isTold({ [field]: odd }), field).toBe(false)
    expect(refusalOf({ [field]: odd }), field).toStartWith(field)
  }
})

test('null is as good as nothing for every field that may be left out', () => {
  const needed = createMessage.required ?? []
  expect(needed).toEqual(['model', 'messages', 'max_tokens'])
  const optional = Object.keys(createMessage.properties).filter((field) => !needed.includes(field))
  const nulls = Object.fromEntries(optional.map((field) => [field, null]))
  parse(nulls)
  expect(isTold(nulls)).toBe(true)
  for (const field of needed) {
    expect(isTold({ [field]: null }), field).toBe(false)
    expect(refusalOf({ [field]: null })).toBe(`${field}: is required`)
  }
})
