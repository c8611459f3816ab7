import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { AudioError } from '#speech/decoders/decoder.ts'
import { decodeReads as decodeMessages } from '#test/inference/upstreams/messages/decoding.ts'
import { decodeReads as decodeResponses } from '#test/inference/upstreams/responses/decoding.ts'
import { decodeAll } from '#test/speech/decoders/decoding.ts'
import { decodeBytes as decodeChat } from '#test/support/chat-decoding.ts'
import { divide, holds, holdsAsync, piecesOf } from '#test/support/properties.ts'
import { hostileValue, spoilt } from './hostile-values.ts'

/** Decoders of upstream events and of audio: whatever they are sent, as `stream-parsers.test.ts`. */

const encoder = new TextEncoder()
const cuts = fc.array(fc.nat(), { maxLength: 10 })

describe('the events of an upstream keep the grammar or end with an AppError', () => {
  const delta = {
    role: 'assistant',
    content: 'a',
    reasoning_content: 'b',
    tool_calls: [
      { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
    ],
  }
  const usage = { prompt_tokens: 1, completion_tokens: 2 }
  const chat = [
    { id: 'x', choices: [{ index: 0, delta, finish_reason: null }] },
    { id: 'x', choices: [{ index: 0, delta: { content: 'c' }, finish_reason: 'stop' }], usage },
  ]
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'm',
    usage: { input_tokens: 1, output_tokens: 1 },
  }
  const messages = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'tool_use', id: 't', name: 'f', input: {} },
    },
    {
      type: 'content_block_delta',
      index: 1,
      delta: { type: 'input_json_delta', partial_json: '{"a":1}' },
    },
    { type: 'content_block_stop', index: 1 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ]
  const item = { id: 'm1', type: 'message', role: 'assistant', status: 'in_progress', content: [] }
  const response = { id: 'resp_1', object: 'response', status: 'in_progress', output: [] }
  const place = { item_id: 'm1', output_index: 0, content_index: 0 }
  const responses = [
    { type: 'response.created', response },
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.content_part.added', ...place, part: { type: 'output_text', text: '' } },
    { type: 'response.output_text.delta', ...place, delta: 'a' },
    { type: 'response.output_text.done', ...place, text: 'a' },
    { type: 'response.content_part.done', ...place, part: { type: 'output_text', text: 'a' } },
    { type: 'response.output_item.done', output_index: 0, item: { ...item, status: 'completed' } },
    { type: 'response.completed', response: { ...response, status: 'completed' } },
  ]
  const wire = (payloads: readonly unknown[]) =>
    encoder.encode(
      payloads
        .map((payload) => {
          const type = String(Object(payload).type ?? '').replace(/[\r\n]/g, '')
          const event = type === '' || type === 'undefined' ? '' : `event: ${type}\n`
          return `${event}data: ${typeof payload === 'string' ? payload : JSON.stringify(payload)}\n\n`
        })
        .join(''),
    )
  const adapters = [
    ['chat', chat, decodeChat],
    ['messages', messages, decodeMessages],
    ['responses', responses, decodeResponses],
  ] as const

  test.each(adapters)('%s', (_, valid, decode) => {
    expect(decode([wire([...valid, '[DONE]'])]).error).toBeNull()
    const payloads = fc
      .tuple(
        spoilt(fc.constant(valid)),
        fc.array(fc.tuple(fc.nat(), hostileValue), { maxLength: 2 }),
        fc.shuffledSubarray([...valid], { minLength: 0 }),
        fc.boolean(),
      )
      .map(([changed, added, subset, isSubset]) => {
        const list: unknown[] = isSubset ? [...subset] : [changed].flat()
        for (const [at, value] of added) list.splice(at % (list.length + 1), 0, value)
        return list
      })
    holds(
      fc.tuple(payloads, cuts),
      ([list, at]) => {
        const bytes = wire(list)
        const whole = decode([bytes])
        if (whole.error !== null) expect(whole.error.kind).not.toBe('internal_error')
        const divided = decode(divide(bytes, at))
        expect(divided.error?.kind).toBe(whole.error?.kind)
        const textOf = (events: readonly object[]) =>
          events.map((event) => ('text' in event ? event.text : '')).join('')
        expect(textOf(divided.events)).toBe(textOf(whole.events))
      },
      150,
    )
  })
})

describe('audio gives samples or an AudioError, wherever it is divided', () => {
  const beginnings = {
    wav: [
      0x52, 0x49, 0x46, 0x46, 0xff, 0, 0, 0, 0x57, 0x41, 0x56, 0x45, 0x66, 0x6d, 0x74, 0x20, 16, 0,
      0, 0,
    ],
    ogg: [0x4f, 0x67, 0x67, 0x53, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0],
    webm: [0x1a, 0x45, 0xdf, 0xa3, 0x84, 0x42, 0x86, 0x81, 1, 0x18, 0x53, 0x80, 0x67],
    pcm: [],
  }
  const formats = {
    wav: { encoding: 'wav' },
    ogg: { encoding: 'opus', container: 'ogg' },
    webm: { encoding: 'opus', container: 'webm' },
    pcm: { encoding: 'pcm_int16', sampleRateHz: 16_000 },
  } as const

  async function resultOf(format: Parameters<typeof decodeAll>[0], pieces: readonly Uint8Array[]) {
    try {
      return (await decodeAll(format, pieces)).samples.length
    } catch (error) {
      if (error instanceof AudioError) return error.code
      throw error
    }
  }

  test.each(Object.keys(formats) as (keyof typeof formats)[])('%s', async (name) => {
    const bytes = fc
      .uint8Array({ maxLength: 600 })
      .map((rest) => Uint8Array.from([...beginnings[name], ...rest]))
    await holdsAsync(
      piecesOf(bytes),
      async (pieces) => {
        const whole = new Uint8Array(Buffer.concat(pieces))
        const divided = await resultOf(
          formats[name],
          pieces.filter(({ length }) => length > 0),
        )
        expect(divided).toBe(await resultOf(formats[name], whole.length === 0 ? [] : [whole]))
      },
      40,
    )
  })
})
