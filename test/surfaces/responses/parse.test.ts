import { describe, expect, test } from 'bun:test'
import { parseCreateResponse } from '#surfaces/responses/parse.ts'
import {
  context,
  expectInvalid,
  parse,
  parseOdd,
  refusalOf,
  refusalOfBody,
  understood,
} from './parsing.ts'

const requestOf = (fields: object) => parse(fields).request
const user = { role: 'user', content: 'Hello' }

describe('a body with model and input alone', () => {
  const { request, echo, stream, includeSealed, needs, ignoredItems } = parse({})

  test('is one user message, and sets no other option', () => {
    expect(request).toEqual({
      model: 'demo',
      instructions: null,
      items: [{ type: 'message', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
      tools: [],
      toolChoice: { type: 'auto' },
      parallelToolCalls: true,
      sampling: {
        temperature: null,
        topP: null,
        topK: null,
        stopSequences: [],
        presencePenalty: null,
        frequencyPenalty: null,
        maxOutputTokens: null,
        topLogprobs: null,
      },
      format: { type: 'text' },
      verbosity: null,
      reasoning: { effort: null, summary: null },
      promptCacheKey: null,
      safetyIdentifier: null,
      serviceTier: null,
    })
    expect({ stream, includeSealed, needs, ignoredItems }).toEqual({
      stream: false,
      includeSealed: false,
      needs: { protocol: 'responses', tools: [], refusals: [], isRelayed: true },
      ignoredItems: [],
    })
  })

  test('is echoed with the default of every field', () => {
    expect(echo).toEqual({
      model: 'demo',
      instructions: null,
      previous_response_id: null,
      tools: [],
      tool_choice: 'auto',
      parallel_tool_calls: true,
      text: { format: { type: 'text' } },
      reasoning: { effort: null, summary: null },
      temperature: 1,
      top_p: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      top_logprobs: 0,
      truncation: 'disabled',
      max_output_tokens: null,
      max_tool_calls: null,
      store: true,
      background: false,
      service_tier: 'default',
      metadata: {},
      safety_identifier: null,
      prompt_cache_key: null,
    })
  })

  test('means the same when every other field is null', () => {
    const names = [...Object.keys(echo), 'stream', 'include', 'conversation', 'user', 'prompt']
    const nulls = Object.fromEntries(names.map((name) => [name, null]))
    const plain = understood(parse({}))
    expect(understood(parse({ ...nulls, model: 'demo' }))).toEqual(plain)
    expect(understood(parse({ text: { format: null, verbosity: null } }))).toEqual(plain)
    expect(understood(parse({ reasoning: { effort: null, summary: null } }))).toEqual(plain)
  })
})

test('every field reaches the request and the echo', () => {
  const { request, echo, stream } = parse({
    instructions: 'Be brief.',
    stream: true,
    parallel_tool_calls: false,
    temperature: 0,
    top_p: 0.5,
    presence_penalty: -2,
    frequency_penalty: 2,
    top_logprobs: 3,
    max_output_tokens: 1,
    max_tool_calls: 2,
    reasoning: { effort: 'xhigh', summary: 'auto' },
    text: { verbosity: 'low' },
    truncation: 'auto',
    store: false,
    service_tier: 'flex',
    metadata: { run: '7' },
    safety_identifier: 'someone',
    prompt_cache_key: 'thread-1',
  })
  expect(stream).toBe(true)
  expect(request).toMatchObject({
    instructions: 'Be brief.',
    parallelToolCalls: false,
    sampling: {
      temperature: 0,
      topP: 0.5,
      presencePenalty: -2,
      frequencyPenalty: 2,
      maxOutputTokens: 1,
      topLogprobs: 3,
    },
    reasoning: { effort: 'xhigh', summary: 'auto' },
    verbosity: 'low',
    promptCacheKey: 'thread-1',
    safetyIdentifier: 'someone',
    serviceTier: 'flex',
  })
  expect(echo).toMatchObject({
    instructions: 'Be brief.',
    parallel_tool_calls: false,
    temperature: 0,
    top_p: 0.5,
    presence_penalty: -2,
    frequency_penalty: 2,
    top_logprobs: 3,
    max_output_tokens: 1,
    max_tool_calls: 2,
    reasoning: { effort: 'xhigh', summary: 'auto' },
    text: { format: { type: 'text' }, verbosity: 'low' },
    truncation: 'auto',
    store: false,
    background: false,
    service_tier: 'default',
    metadata: { run: '7' },
    safety_identifier: 'someone',
    prompt_cache_key: 'thread-1',
  })
})

test('a deprecated field applies if the newer one is absent', () => {
  expect(requestOf({ user: 'old' }).safetyIdentifier).toBe('old')
  expect(requestOf({ user: 'old', safety_identifier: 'new' }).safetyIdentifier).toBe('new')
  expect(requestOf({ reasoning: { generate_summary: 'auto' } }).reasoning.summary).toBe('auto')
})

test('unknown fields are accepted at any depth', () => {
  const extended = parse({
    client_metadata: { a: [1] },
    moderation: {},
    input: [{ ...user, vendor: 1, content: [{ type: 'input_text', text: 'Hello', x: [] }] }],
    text: { format: { type: 'text', x: 1 }, y: 2 },
    reasoning: { context: 'auto', mode: 'fast' },
  })
  expect(understood(extended)).toEqual(understood(parse({})))
})

describe('include', () => {
  test('enables logprobs and encrypted reasoning', () => {
    const include = ['message.output_text.logprobs', 'reasoning.encrypted_content']
    expect(requestOf({ include }).sampling.topLogprobs).toBe(0)
    expect(requestOf({ include, top_logprobs: 5 }).sampling.topLogprobs).toBe(5)
    expect(parse({ include }).includeSealed).toBe(true)
  })

  test('can contain unknown values', () => {
    const odd = parseOdd({ include: ['acme:everything', 7] })
    expect(understood(odd)).toEqual(understood(parse({})))
  })
})

describe('a body that is not an object', () => {
  test.each([[null], [[]], ['text'], [7], [true]])('%j', (body) => {
    expectInvalid(refusalOfBody(body), null, 'The request body must be an object.')
  })
})

describe('messages instead of input', () => {
  const messages = [{ role: 'user', content: 'Hello' }]

  test('are user_message_missing, also without a model or with an input of null', () => {
    for (const body of [{ model: 'demo', messages }, { messages }, { messages, input: null }]) {
      expect(refusalOfBody(body)).toMatchObject({
        kind: 'user_message_missing',
        wireCode: 'user_message_missing',
        status: 400,
        param: 'input',
      })
    }
  })

  test('are ignored like any unknown field if there is an input', () => {
    const { request } = parseCreateResponse({ model: 'demo', input: 'Hello', messages }, context)
    expect(request.items).toHaveLength(1)
  })
})

describe('a field that is refused', () => {
  const longName = 'n'.repeat(65)
  const rows: [fields: object, param: string, predicate: string][] = [
    [{ model: undefined }, 'model', 'is required'],
    [{ model: null }, 'model', 'is required'],
    [{ model: '' }, 'model', 'must be a string of 1 to 256 characters'],
    [{ model: 7 }, 'model', 'must be a string of 1 to 256 characters'],
    [{ model: 'm'.repeat(257) }, 'model', 'must be a string of 1 to 256 characters'],
    [{ input: undefined }, 'input', 'is required'],
    [{ input: null }, 'input', 'is required'],
    [{ input: '' }, 'input', 'must not be empty'],
    [{ input: [] }, 'input', 'must not be empty'],
    [{ input: 7 }, 'input', 'must be a string or an array of objects'],
    [{ input: { role: 'user' } }, 'input', 'must be a string or an array of objects'],
    [{ instructions: [] }, 'instructions', 'must be a string'],
    [{ stream: 'true' }, 'stream', 'must be a boolean'],
    [{ stream: 1 }, 'stream', 'must be a boolean'],
    [{ store: 'no' }, 'store', 'must be a boolean'],
    [{ temperature: '1' }, 'temperature', 'must be a number from 0 to 2'],
    [{ temperature: 2.1 }, 'temperature', 'must be a number from 0 to 2'],
    [{ temperature: -0.1 }, 'temperature', 'must be a number from 0 to 2'],
    [{ temperature: JSON.parse('1e400') }, 'temperature', 'must be a number from 0 to 2'],
    [{ top_p: 1.01 }, 'top_p', 'must be a number from 0 to 1'],
    [{ presence_penalty: -2.5 }, 'presence_penalty', 'must be a number from -2 to 2'],
    [{ frequency_penalty: 3 }, 'frequency_penalty', 'must be a number from -2 to 2'],
    [{ top_logprobs: 21 }, 'top_logprobs', 'must be an integer from 0 to 20'],
    [{ top_logprobs: 1.5 }, 'top_logprobs', 'must be an integer from 0 to 20'],
    [{ max_output_tokens: 0 }, 'max_output_tokens', 'must be an integer of 1 or more'],
    [{ max_output_tokens: '9' }, 'max_output_tokens', 'must be an integer of 1 or more'],
    [{ max_output_tokens: 1e300 }, 'max_output_tokens', 'must be an integer of 1 or more'],
    [{ max_tool_calls: 0.5 }, 'max_tool_calls', 'must be an integer of 1 or more'],
    [{ truncation: 'middle' }, 'truncation', 'must be one of auto, disabled'],
    [{ include: 'reasoning' }, 'include', 'must be an array of strings'],
    [{ metadata: [] }, 'metadata', 'must be an object'],
    [{ metadata: { a: 1 } }, 'metadata.a', 'must be a string of at most 512 characters'],
    [
      { metadata: { a: 'x'.repeat(513) } },
      'metadata.a',
      'must be a string of at most 512 characters',
    ],
    [
      { metadata: { [longName]: '' } },
      'metadata',
      'must not have a key of more than 64 characters',
    ],
    [
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, ''])) },
      'metadata',
      'must not have more than 16 pairs',
    ],
    [{ reasoning: 'high' }, 'reasoning', 'must be an object'],
    [
      { reasoning: { effort: 'extreme' } },
      'reasoning.effort',
      'must be one of none, minimal, low, medium, high, xhigh, max',
    ],
    [
      { reasoning: { summary: 'long' } },
      'reasoning.summary',
      'must be one of auto, concise, detailed',
    ],
    [{ text: { verbosity: 'mute' } }, 'text.verbosity', 'must be one of low, medium, high'],
    [{ background: true, store: false }, 'background', 'requires store'],
  ]
  for (const [fields, param, predicate] of rows) {
    test(`${param} ${predicate}`, () => {
      expectInvalid(refusalOf(fields), param, `${param} ${predicate}.`)
    })
  }
})
