import { describe, expect, test } from 'bun:test'
import { blocksOf, encode, finishOf, sseOf } from '#test/inference/upstreams/responses/decoding.ts'
import { checkMessageBeginning } from '#test/support/message-frames.ts'
import {
  blockDelta,
  blockStart,
  blockStop,
  decode,
  decodeReads,
  decodeWhole,
  emptyText,
  inputDelta,
  messageDelta,
  messageStart,
  messageStop,
  text,
  textBlock,
  toolUse,
  wireOf,
} from './decoding.ts'

const hi = [messageStart, ...textBlock('Hi')]
const ping = { type: 'ping' }

describe('stop reasons', () => {
  test.each([
    ['end_turn', 'stop'],
    ['pause_turn', 'stop'],
    ['a_word_of_tomorrow', 'stop'],
    ['tool_use', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content-filter'],
  ] as const)('%s', (rawReason, reason) => {
    const decoded = decode([...hi, messageDelta(rawReason), messageStop])
    expect(finishOf(decoded)).toMatchObject({ reason, rawReason })
  })

  test('the matched stop sequence is reported', () => {
    const decoded = decode([
      ...hi,
      messageDelta('stop_sequence', { stop_sequence: 'END' }),
      messageStop,
    ])
    expect(finishOf(decoded)).toMatchObject({ reason: 'stop-sequence', stopSequence: 'END' })
  })

  test('truncated text and calls are incomplete', () => {
    expect(blocksOf(decode([...hi, messageDelta('max_tokens'), messageStop]))).toEqual([
      { text: 'Hi', cut: true },
    ])
    const cut = [messageStart, blockStart(toolUse('t_1', 'look')), inputDelta('{"a":'), blockStop()]
    expect(blocksOf(decode([...cut, messageDelta('max_tokens'), messageStop]))).toEqual([
      { call: 'look', id: 't_1', input: '{"a":', cut: true },
    ])
  })

  test('a complete call stays complete in a truncated message', () => {
    const whole = [
      messageStart,
      blockStart(toolUse('t_1', 'look')),
      inputDelta('{"a":1}'),
      blockStop(),
    ]
    expect(blocksOf(decode([...whole, messageDelta('max_tokens'), messageStop]))).toEqual([
      { call: 'look', id: 't_1', input: '{"a":1}' },
    ])
  })
})

describe('usage', () => {
  const usageOf = (start: object, end: object) => {
    const head = { type: 'message_start', message: { ...messageStart.message, usage: start } }
    const decoded = decode([head, { ...messageDelta(), usage: end }, messageStop])
    const finish = decoded.events.at(-1)
    return finish?.type === 'finish' ? finish.usage : null
  }

  test('the cache is a part of the input', () => {
    const usage = usageOf(
      { input_tokens: 5, cache_read_input_tokens: 100, cache_creation_input_tokens: 20 },
      { output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } },
    )
    expect(usage).toEqual({
      inputTokens: 125,
      cachedTokens: 100,
      cacheWriteTokens: 20,
      outputTokens: 9,
      reasoningTokens: 4,
      totalTokens: 134,
    })
  })

  test('counts at the end replace those at the start, except zeros and nulls', () => {
    expect(
      usageOf({ input_tokens: 0, output_tokens: 1 }, { input_tokens: 61, output_tokens: 2 }),
    ).toMatchObject({ inputTokens: 61, outputTokens: 2 })
    expect(usageOf({ input_tokens: 43 }, { input_tokens: null, output_tokens: 2 })).toMatchObject({
      inputTokens: 43,
    })
    expect(usageOf({ input_tokens: 43 }, { input_tokens: 0, output_tokens: 2 })).toMatchObject({
      inputTokens: 43,
    })
  })

  test('without counts from the server, usage is null', () => {
    const head = { type: 'message_start', message: {} }
    const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' } }
    expect(decode([head, ...textBlock('Hi'), end, messageStop]).events.at(-1)).toMatchObject({
      usage: null,
    })
  })

  test('counts may arrive after the end or in the middle', () => {
    const counts = { type: 'message_delta', delta: {}, usage: { output_tokens: 50 } }
    const decoded = decode([
      messageStart,
      blockStart(emptyText),
      counts,
      text('Hi'),
      messageDelta(),
      counts,
      messageStop,
    ])
    expect(decoded.error).toBeNull()
    expect(decoded.events.at(-1)).toMatchObject({ usage: { outputTokens: 50 } })
    expect(decoded.frames.map(({ payload }) => payload['type']).slice(-4)).toEqual([
      'content_block_stop',
      'message_delta',
      'message_delta',
      'message_stop',
    ])
  })
})

describe('a response that ends early', () => {
  test.each([
    ['at once', []],
    ['behind its start', [messageStart]],
    ['in a block', hi.slice(0, 3)],
    ['behind a block', hi],
    ['with a stop and no reason', [...hi, messageStop]],
    ['with counts and no reason', [...hi, messageDelta(''), messageStop]],
    ['with the marker of another protocol', [...hi, '[DONE]']],
  ])('%s is truncated', (_, payloads) => {
    const decoded = decode(payloads)
    expect(decoded.error?.kind).toBe('upstream_truncated')
    checkMessageBeginning(wireOf(decoded.frames))
  })

  test('after its stop reason it is complete', () => {
    for (const rest of [[], ['[DONE]'], [ping]]) {
      const decoded = decode([...hi, messageDelta(), ...rest])
      expect(decoded.error).toBeNull()
      expect(decoded.frames.at(-1)?.payload).toEqual(messageStop)
    }
  })

  test('truncated JSON is truncation at the end and invalid elsewhere', () => {
    const cut = '{"type":"content_block_del'
    expect(decode([...hi, cut]).error?.kind).toBe('upstream_truncated')
    expect(decode([...hi, cut, messageDelta(), messageStop]).error?.kind).toBe(
      'upstream_invalid_answer',
    )
  })

  test('a response of another protocol is invalid', () => {
    const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', choices: [] }
    expect(decode([chunk, chunk]).error?.kind).toBe('upstream_invalid_answer')
    expect(decodeWhole({ id: 'x', choices: [] }).error?.kind).toBe('upstream_invalid_answer')
    expect(decodeWhole({ type: 'message', content: [] }).error?.kind).toBe('upstream_truncated')
  })
})

describe('errors in the stream', () => {
  const saidBy = (type: string, message = 'Broken.') => ({
    type: 'error',
    error: { type, message },
    request_id: 'req_1',
  })

  test.each([
    ['overloaded_error', 'upstream_overloaded', 529],
    ['rate_limit_error', 'rate_limit_exceeded', 429],
    ['billing_error', 'insufficient_quota', 402],
    ['api_error', 'upstream_error', 500],
    ['timeout_error', 'upstream_error', 504],
    ['not_found_error', 'upstream_refused', 404],
    ['invalid_request_error', 'invalid_request', 400],
    ['request_too_large', 'request_too_large', 413],
  ] as const)('%s', (type, kind, status) => {
    const payload = saidBy(type)
    const { error } = decode([...hi, payload])
    expect(error).toMatchObject({
      kind,
      message: 'Broken.',
      relay: { status, body: JSON.stringify(payload), contentType: 'application/json' },
    })
  })

  test('a rejected gateway credential is not relayed to the client', () => {
    const { error } = decode([saidBy('authentication_error', 'invalid x-api-key')])
    expect(error?.kind).toBe('upstream_refused')
    expect(error?.relay).toBeUndefined()
  })

  test('a prompt that is too long is a context_length_exceeded error', () => {
    const payload = saidBy('invalid_request_error', 'prompt is too long: 9 tokens > 8 maximum')
    expect(decode([payload]).error?.kind).toBe('context_length_exceeded')
  })

  test('errors in other formats are reported, and relayed only within the protocol', () => {
    expect(decode([...hi, { error: { message: 'Out of memory.' } }]).error).toMatchObject({
      kind: 'upstream_error',
      message: 'Out of memory.',
      relay: undefined,
    })
    expect(decode([saidBy('api_error')], { relays: false }).error?.relay).toBeUndefined()
    const bare = decodeReads([encode('event: error\ndata: gone\n\n')])
    expect(bare.error?.kind).toBe('upstream_error')
  })

  test('errors after the end are ignored', () => {
    expect(decode([...hi, messageDelta(), saidBy('api_error'), messageStop]).error).toBeNull()
    expect(decode([...hi, messageDelta(), messageStop, saidBy('api_error')]).error).toBeNull()
  })
})

describe('noise', () => {
  test('is ignored', () => {
    const decoded = decode([
      ping,
      ': comment',
      'ping',
      messageStart,
      messageStart,
      ping,
      { type: 'vendor_trace', index: 0, span: 1 },
      blockStart(emptyText),
      { ...text('H'), p: 'abc' },
      blockDelta({ type: 'delta_of_tomorrow', text: 'x' }),
      ping,
      text('i'),
      text(''),
      blockStop(),
      messageDelta(),
      messageStop,
      ...hi,
    ])
    expect(decoded.error).toBeNull()
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi' }])
    expect(decoded.frames.map(({ payload }) => payload['type'])).not.toContain('vendor_trace')
  })

  test.each([
    ['a whole message as the data of an event', { type: 'message', stop_reason: 'end_turn' }],
    ['an unknown event with a stop reason', { type: 'acme', delta: { stop_reason: 'end_turn' } }],
    ['an unknown event with an error', { type: 'acme_trace', error: { message: 'span lost' } }],
  ])('%s does not end the message', (_, payload) => {
    const start = [messageStart, blockStart(emptyText), text('Hi')]
    const decoded = decode([
      ...start,
      payload,
      text(' there'),
      blockStop(),
      messageDelta(),
      messageStop,
    ])
    expect(decoded.error).toBeNull()
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi there' }])
    expect(decode([...start, payload]).error?.kind).toBe('upstream_truncated')
    expect(decode([payload]).error?.kind).toBe('upstream_invalid_answer')
  })

  test('blocks without events are only relayed', () => {
    const search = { type: 'tool_search_tool_result', tool_use_id: 'srv_1', content: {} }
    const payloads = [
      messageStart,
      blockStart(search, 0),
      blockStop(0),
      ...textBlock('Hi', 1),
      messageDelta(),
      messageStop,
    ]
    const decoded = decode(payloads)
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi' }])
    expect(decoded.frames.map(({ payload }) => payload)).toEqual(payloads)
    expect(decode(payloads, { relays: false }).frames).toEqual([])
  })

  test('the event name can replace the type', () => {
    const body = sseOf([messageStart, ...textBlock('Hi'), messageDelta(), messageStop]).replace(
      /"type":"(content|mess)\w+",?/g,
      '',
    )
    const decoded = decodeReads([encode(body)])
    expect(blocksOf(decoded)).toEqual([{ text: 'Hi' }])
    expect(decoded.frames.map(({ payload }) => payload['type'])).toHaveLength(6)
  })
})
