import { describe, expect, test } from 'bun:test'
import type { EventBatch, GenerationEvent, RelayFrame } from '#inference/events.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import {
  callBlock,
  foldMessage,
  generationOf,
  openMessageRenderer,
  renderMessage,
  textBlock,
} from '#test/support/message-rendering.ts'
import { testSeals } from '#test/support/sealing.ts'

/** Relayed frames of an upstream of the same protocol. */

const { reasoning: reasoningSeal } = testSeals

const frame = (payload: JsonObject, sealed?: string): RelayFrame => ({
  payload,
  data: JSON.stringify(payload, null, 1).replaceAll('\n', ''),
  ...(sealed === undefined ? {} : { sealed }),
})
const relayed = (frames: RelayFrame[], events: GenerationEvent[] = []): EventBatch =>
  Object.assign([...events], { relay: { protocol: 'messages', frames, maker: 'up/m' } as const })
const start = frame({
  type: 'message_start',
  message: {
    id: 'msg_of_the_upstream',
    type: 'message',
    role: 'assistant',
    model: 'upstream-name',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 5, output_tokens: 1, service_tier: 'standard' },
  },
})
const open = (index: number, block: JsonObject) =>
  frame({ type: 'content_block_start', index, content_block: block })
const delta = (index: number, given: JsonObject, sealed?: string) =>
  frame({ type: 'content_block_delta', index, delta: given }, sealed)
const stop = (index: number) => frame({ type: 'content_block_stop', index })
const end = [
  frame({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 8, input_tokens: null },
    context_management: { applied_edits: [] },
  }),
  frame({ type: 'message_stop' }),
]
const finish = generationOf([]).slice(-1)
const begin: GenerationEvent = { type: 'generation-start' }
const text = textBlock(0, 'Hello')
const openText = [
  open(0, { type: 'text', text: '' }),
  delta(0, { type: 'text_delta', text: 'Hello' }),
]

describe('frames of an upstream', () => {
  test('are relayed unchanged, except for the id and the model', () => {
    const frames = [start, ...openText, stop(0), ...end]
    const { message, wire } = renderMessage([relayed(frames, generationOf(text))])
    expect(message).toMatchObject({
      id: 'msg_test',
      model: 'vendor-model-m',
      content: [{ type: 'text', text: 'Hello' }],
      usage: { input_tokens: 5, output_tokens: 8 },
    })
    for (const { payload, data } of frames.slice(1)) {
      expect(wire).toContain(`event: ${payload['type']}\ndata: ${data}\n\n`)
    }
    expect(wire).not.toContain('of_the_upstream')
    expect(wire).not.toContain('upstream-name')
  })

  test('are single lines for every client', () => {
    const odd = { payload: { type: 'ping' }, data: '{"type":"ping","x":"\u2028"}' }
    const renderer = openMessageRenderer()
    expect(renderer.push(relayed([odd]))).toContain('"x":"\\u2028"')
  })

  test('without events are relayed too, also without streaming', () => {
    const result = { type: 'advisor_tool_result', tool_use_id: 'srv_1', content: { text: 'x' } }
    const cited = { type: 'char_location', cited_text: 'c' }
    const frames = [
      start,
      open(0, result),
      stop(0),
      open(1, { type: 'text', text: '', citations: [] }),
      delta(1, { type: 'citations_delta', citation: cited }),
      delta(1, { type: 'text_delta', text: 'Hello' }),
      stop(1),
      open(2, { type: 'server_tool_use', id: 'srv_2', name: 'web_fetch', input: {} }),
      delta(2, { type: 'input_json_delta', partial_json: '{"url":"u"}' }),
      stop(2),
      open(3, { type: 'compaction', content: null }),
      delta(3, { type: 'compaction_delta', content: 'all of it' }),
      stop(3),
    ]
    const batches = [relayed(frames, [begin, ...text]), relayed(end, finish)]
    const content = [
      result,
      { type: 'text', text: 'Hello', citations: [cited] },
      { type: 'server_tool_use', id: 'srv_2', name: 'web_fetch', input: { url: 'u' } },
      { type: 'compaction', content: 'all of it' },
    ]
    expect(renderMessage(batches).message).toMatchObject({ content })
    expect(foldMessage(batches)).toMatchObject({
      id: 'msg_test',
      model: 'vendor-model-m',
      content,
      stop_reason: 'end_turn',
      usage: { input_tokens: 5, output_tokens: 8, service_tier: 'standard' },
      context_management: { applied_edits: [] },
    })
  })

  test('contain seals of the gateway instead of those of the upstream', () => {
    const frames = [
      start,
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Hm, ' }),
      delta(0, { type: 'thinking_delta', thinking: 'yes.' }),
      delta(0, { type: 'signature_delta', signature: 'theirs' }, 'theirs'),
      stop(0),
      frame(
        {
          type: 'content_block_start',
          index: 1,
          content_block: { type: 'redacted_thinking', data: 'secret' },
        },
        'redacted:secret',
      ),
      stop(1),
      ...end,
    ]
    const { message, wire } = renderMessage([relayed(frames)], { reasoningSeal })
    expect(wire).not.toContain('theirs')
    expect(wire).not.toContain('secret')
    const content = message?.['content'] as JsonObject[]
    const seals = [content[0]?.['signature'], content[1]?.['data']]
    expect(seals.map((seal) => reasoningSeal.open(String(seal)))).toEqual([
      { text: 'Hm, yes.', payload: 'theirs', maker: 'up/m' },
      { text: '', payload: 'redacted:secret', maker: 'up/m' },
    ])
  })
})

describe('frames that stop', () => {
  const failure: GenerationEvent = {
    type: 'error',
    error: new AppError('upstream_truncated', 'Cut.'),
  }
  const cut: GenerationEvent = { type: 'text-end', block: 0, complete: false }

  test('within a block are followed by its end and the error', () => {
    const batches = [relayed([start, ...openText], [begin, ...text.slice(0, 2)]), [cut, failure]]
    const { error, frames } = renderMessage(batches)
    expect(error).toMatchObject({ type: 'api_error', message: 'Cut.' })
    expect(frames.map(({ type }) => type).slice(-2)).toEqual(['content_block_stop', 'error'])
    const renderer = openMessageRenderer()
    const wire = renderer.push(relayed([start, ...openText], [begin, ...text.slice(0, 2)]))
    checkMessageStream(wire + renderer.fail(new AppError('internal_error', 'Oh.')))
  })

  test('are followed by the error of the upstream, except for its ids', () => {
    const error = { type: 'overloaded_error', message: 'Overloaded' }
    const body = JSON.stringify({ type: 'error', error, request_id: 'req_theirs' })
    const contentType = 'application/json'
    const upstreamError = new AppError('upstream_overloaded', 'The upstream is busy.', {
      relay: { status: 529, body, contentType },
    })
    const { wire, error: seen } = renderMessage([
      relayed([start], [begin]),
      [{ type: 'error', error: upstreamError }],
    ])
    expect(seen).toEqual(error)
    expect(wire).not.toContain('req_theirs')
  })

  test('within a block without events are followed by its end', () => {
    const unknown = open(1, { type: 'container_upload', file_id: 'f' })
    const begun = relayed([start, ...openText, stop(0), unknown], [begin, ...text])
    const { error, message } = renderMessage([begun, [failure]])
    expect(error).not.toBeNull()
    expect(message).toMatchObject({ content: [{ text: 'Hello' }, { file_id: 'f' }] })
  })

  test('are continued in the same block, and then with the next index', () => {
    const events = generationOf([
      ...textBlock(0, 'Hello', ' world'),
      ...callBlock(1, { callId: 'c', pieces: ['{"a":1}'] }),
    ])
    const batches = [relayed([start, ...openText], events.slice(0, 3)), events.slice(3)]
    for (const message of [renderMessage(batches).message, foldMessage(batches)]) {
      expect(message).toMatchObject({
        content: [
          { type: 'text', text: 'Hello world' },
          { type: 'tool_use', id: 'c', input: { a: 1 } },
        ],
        stop_reason: 'tool_use',
      })
    }
  })

  test('are not repeated if events end a block later', () => {
    const thinking = [
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
      stop(0),
    ]
    const batches = [
      relayed(
        [start, ...thinking],
        [
          begin,
          { type: 'reasoning-start', block: 0 },
          { type: 'reasoning-delta', block: 0, part: 0, text: 'Hm.' },
        ],
      ),
      [{ type: 'reasoning-end', block: 0, complete: true }, failure] as const,
    ]
    const { message } = renderMessage(batches)
    expect(message?.['content']).toEqual([{ type: 'thinking', thinking: 'Hm.', signature: '' }])
  })

  test('are not continued within a hosted tool of the upstream', () => {
    const item = { type: 'mcp_call', server_label: 's', name: 'n', arguments: '{}', output: 'x' }
    const use = { type: 'mcp_tool_use', id: 'mcp_1', name: 'n', server_name: 's', input: {} }
    const batches: EventBatch[] = [
      relayed([start, open(0, use)], [begin, { type: 'hosted-tool-start', block: 0, item }]),
      [{ type: 'hosted-tool-end', block: 0, item }, ...textBlock(1, 'So.'), ...finish],
    ]
    expect(renderMessage(batches).message).toMatchObject({ content: [use, { text: 'So.' }] })
    expect(foldMessage(batches)).toMatchObject({ content: [use, { text: 'So.' }] })
  })

  test('do not resume: the rest is rendered from events', () => {
    const events = generationOf([...text, ...textBlock(1, 'again')])
    const batches = [
      relayed([start, ...openText], events.slice(0, 3)),
      events.slice(3, 4),
      relayed([open(7, { type: 'text', text: '' })], events.slice(4)),
    ]
    expect(renderMessage(batches).message).toMatchObject({
      content: [{ text: 'Hello' }, { text: 'again' }],
    })
  })
})
