import { describe, expect, test } from 'bun:test'
import type { ServerSentEvent } from '#inference/event-stream.ts'
import type { GenerationEvent } from '#inference/events.ts'
import type { ErrorKind } from '#lib/errors.ts'
import {
  callDelta,
  chunk,
  decodeBytes,
  decodePayloads,
  finishOf,
  makeDecoder,
} from '#test/support/chat-decoding.ts'

const text = chunk({ content: 'Hello' })
const stop = chunk({}, 'stop')
const callDeltaCut = chunk(callDelta([0, 'a', 'look', '{"x":']))
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }

function failureOf(payloads: readonly unknown[]): ErrorKind | undefined {
  return decodePayloads(payloads).error?.kind
}

describe('the finish reason', () => {
  test.each([
    ['stop', 'stop'],
    ['eos', 'stop'],
    ['eos_token', 'stop'],
    ['end_turn', 'stop'],
    ['an unknown reason', 'stop'],
    ['length', 'length'],
    ['model_length', 'length'],
    ['max_tokens', 'length'],
    ['content_filter', 'content-filter'],
    ['SAFETY', 'content-filter'],
  ] as const)('%s is %s', (word, reason) => {
    const finish = finishOf([text, chunk({}, word), '[DONE]'])
    expect(finish).toEqual({ type: 'finish', reason, rawReason: word, usage: null })
  })

  test('is that of the text if a call never got a name', () => {
    expect(finishOf([text, chunk(callDelta([0, 'a', null, null]), 'stop')])?.reason).toBe('stop')
  })

  test.each(['tool_calls', 'function_call', 'stop', 'whatever'])(
    'is tool-calls if calls were made, for %s',
    (word) => {
      const call = chunk(callDelta([0, 'a', 'look', '{}']))
      expect(finishOf([call, chunk({}, word)])?.reason).toBe('tool-calls')
    },
  )

  test('is stop for tool_calls without a call', () => {
    expect(finishOf([text, chunk({}, 'tool_calls')])?.reason).toBe('stop')
  })

  test.each(['error', 'abort', 'network_error', 'insufficient_system_resource'])(
    'is a failure for %s',
    (word) => {
      expect(failureOf([text, chunk({}, word)])).toBe('upstream_error')
    },
  )

  test('an empty one is ignored', () => {
    const { events, error } = decodePayloads([chunk({ content: 'a' }, ''), chunk({ content: 'b' })])
    expect(events.at(-1)).toEqual({ type: 'text-delta', block: 0, text: 'b' })
    expect(error?.kind).toBe('upstream_truncated')
  })

  test('the open block is incomplete at the limit and complete at a stop', () => {
    const ends = (word: string, delta: object) =>
      decodePayloads([chunk(delta), chunk({}, word)]).events.flatMap((event) =>
        'complete' in event ? [event.complete] : [],
      )
    expect(ends('length', { content: 'a' })).toEqual([false])
    expect(ends('content_filter', { content: 'a' })).toEqual([false])
    expect(ends('length', { reasoning_content: 'a' })).toEqual([false])
    expect(ends('stop', { content: 'a' })).toEqual([true])
  })
})

describe('after the finish reason', () => {
  test('usage alone ends the response immediately, without [DONE]', () => {
    const decoder = makeDecoder()
    const out: GenerationEvent[] = []
    const push = (payload: unknown) =>
      decoder.push({ event: '', data: JSON.stringify(payload) }, out)
    push(text)
    expect(decoder.state).toBe('open')
    push(stop)
    expect(decoder.state).toBe('finishing')
    push({ choices: [], usage })
    expect(decoder.state).toBe('done')
    expect(out.at(-1)?.type).toBe('finish')
  })

  test.each(['[DONE]', ' [DONE] ', '[done]', '"[DONE]"'])('%p ends the answer', (marker) => {
    const decoder = makeDecoder()
    for (const data of [JSON.stringify(stop), marker]) decoder.push({ event: '', data }, [])
    expect(decoder.state).toBe('done')
  })

  test('[DONE] may be missing', () => {
    expect(finishOf([text, { ...stop, usage }])?.usage).toMatchObject({ totalTokens: 5 })
  })

  test('a second finish, more text, an error and bytes after [DONE] are ignored', () => {
    const { events, error } = decodePayloads([
      text,
      stop,
      chunk({ content: ' again' }, 'length'),
      { error: { message: 'late' } },
      '{"cut": ',
      '[DONE]',
      chunk({ content: ' and again' }),
      'garbage',
      '[DONE]',
    ])
    expect(error).toBeNull()
    expect(events.filter((event) => event.type === 'finish')).toHaveLength(1)
    expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'stop' })
    expect(JSON.stringify(events)).not.toContain('again')
  })
})

describe('an event whose name the protocol does not define', () => {
  const named = (event: string, payload: object) =>
    Buffer.from(`event: ${event}\ndata: ${JSON.stringify(payload)}\n\n`)
  const start = named('', text)
  const choices = [{ delta: {}, finish_reason: 'stop' }]

  test.each([
    ['a finish reason', { choices }],
    ['a whole message', { choices: [{ message: { content: 'Bye' }, finish_reason: 'stop' }] }],
    ['an error', { error: { message: 'span lost' } }],
  ])('does not end the response by %s', (_, payload) => {
    const { events, error } = decodeBytes([
      start,
      named('acme.trace', payload),
      named('', chunk({ content: ' there' })),
      named('', stop),
    ])
    expect(error).toBeNull()
    const texts = events.map((event) => (event.type === 'text-delta' ? event.text : ''))
    expect(texts.join('')).toBe('Hello there')
    const cut = decodeBytes([start, named('acme.trace', payload)])
    expect(cut.error?.kind).toBe('upstream_truncated')
  })

  test('is a chunk if its object type is one, and `message` is the default name', () => {
    for (const bytes of [named('chunk', stop), named('message', { choices })]) {
      expect(decodeBytes([start, bytes]).error).toBeNull()
    }
  })
})

describe('usage', () => {
  const read = (wire: unknown) => finishOf([text, { ...stop, usage: wire }, '[DONE]'])?.usage

  test('reasoning that a server counts separately is added if the total proves it', () => {
    const details = { completion_tokens_details: { reasoning_tokens: 340 } }
    const counts = { prompt_tokens: 12, completion_tokens: 2, total_tokens: 354 }
    expect(read({ ...counts, ...details })).toMatchObject({
      outputTokens: 342,
      reasoningTokens: 340,
      totalTokens: 354,
    })
  })

  test('reasoning within the output is not added', () => {
    const details = { completion_tokens_details: { reasoning_tokens: 64 } }
    const counts = { prompt_tokens: 15, completion_tokens: 78, total_tokens: 93 }
    expect(read({ ...counts, ...details })).toMatchObject({
      outputTokens: 78,
      reasoningTokens: 64,
    })
  })

  test('cached tokens have two names', () => {
    const counts = { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 }
    expect(read({ ...counts, prompt_cache_hit_tokens: 8 })).toMatchObject({ cachedTokens: 8 })
    const details = { cached_tokens: 7, cache_write_tokens: 2 }
    expect(read({ ...counts, prompt_tokens_details: details })).toMatchObject({
      cachedTokens: 7,
      cacheWriteTokens: 2,
    })
  })

  test('a missing total is computed; without any counts, usage is null', () => {
    expect(read({ prompt_tokens: 3, completion_tokens: 2 })).toMatchObject({ totalTokens: 5 })
    expect(read({ prompt_tokens: null, cost: 1 })).toBeNull()
    expect(read(null)).toBeNull()
  })

  test('usage inside a choice is read as well', () => {
    const choice = { index: 0, delta: {}, finish_reason: 'stop', usage }
    expect(finishOf([text, { choices: [choice] }])?.usage).toMatchObject({ totalTokens: 5 })
  })
})

describe('an invalid response', () => {
  test.each([
    ['nothing at all', []],
    ['text without a finish reason', [text]],
    ['[DONE] without content', [chunk({ role: 'assistant', content: '' }), '[DONE]']],
    ['usage without content', [chunk({ role: 'assistant' }), { choices: [], usage }]],
    ['text with usage', [chunk({ content: 'Hello' }, null, { usage })]],
    ['text after usage', [text, { choices: [], usage }, text]],
    ['similar text after usage', [text, text, text, { choices: [], usage }, text]],
    ['a call that breaks off before [DONE]', [callDeltaCut, '[DONE]']],
    ['a call that breaks off before usage', [callDeltaCut, { choices: [], usage }]],
    ['JSON that breaks off', [text, '{"choices":[{"index":0,"delta":{"content":"x']],
  ])('%s is truncated', (_, payloads) => {
    const { error } = decodePayloads(payloads)
    expect(error?.kind).toBe('upstream_truncated')
    expect(error?.message).toContain('truncated')
    expect(error?.wireCode).toBe('server_error')
  })

  test('content before the truncation is emitted', () => {
    const { events } = decodePayloads([text, '{"choices":'])
    expect(events.at(-1)).toEqual({ type: 'text-delta', block: 0, text: 'Hello' })
  })

  test.each([
    ['broken JSON in the middle', ['{"choices":', text]],
    ['a line of text', [text, 'upstream timed out']],
    ['a page', ['<html>']],
    ['a list', ['[1]']],
    ['objects that are no chunks', [{ status: 'ok' }]],
  ])('%s is invalid', (_, payloads) => {
    expect(failureOf(payloads)).toBe('upstream_invalid_answer')
  })

  test('pings and empty data are ignored', () => {
    expect(finishOf([{ type: 'ping' }, '', text, ' ', stop])?.reason).toBe('stop')
  })
})

describe('an error in the stream', () => {
  test.each([
    [{ error: { message: 'CUDA out of memory', code: 500 } }, 'upstream_error'],
    [{ error: { message: 'slow down', code: 429 } }, 'rate_limit_exceeded'],
    [{ error: { message: 'slow down', type: 'rate_limit_error' } }, 'rate_limit_exceeded'],
    [{ error: { message: 'no', type: 'invalid_request_error' } }, 'invalid_request'],
    [{ object: 'error', message: 'gone', code: 503 }, 'upstream_overloaded'],
    [{ error: 'something broke' }, 'upstream_error'],
    [{ ...text, error: { message: 'and a chunk' } }, 'upstream_error'],
  ] as const)('%j is %s', (payload, kind) => {
    expect(failureOf([text, payload])).toBe(kind)
  })

  test('an event named `error` is an error with any data', () => {
    for (const data of ['{"message":"boom"}', '{"error":{"message":"boom"}}', 'boom']) {
      const { error } = decodeBytes([Buffer.from(`event: error\ndata: ${data}\n\n`)])
      expect(error?.kind).toBe('upstream_error')
    }
  })

  test('error: null is not an error', () => {
    expect(finishOf([{ ...text, error: null }, stop])?.reason).toBe('stop')
  })

  test('before the first chunk, it starts no generation', () => {
    const decoder = makeDecoder()
    const out: GenerationEvent[] = []
    const failing: ServerSentEvent = { event: '', data: '{"error":{"message":"x"}}' }
    expect(() => decoder.push(failing, out)).toThrow('x')
    expect(out).toEqual([])
  })
})
