import { afterEach, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { sendRaw } from '#test/support/raw-client.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'

/**
 * The cost of one event, counted and not timed: the events of one read leave in one write, and each
 * event is parsed and serialized once. Each further step would be a large part of the whole.
 */

const deltaCount = 400
/**
 * For the frames around the deltas (objects, items, usage), authentication, log and connection
 * pool.
 */
const besidesMax = 20

const { parse, stringify } = JSON
let gateway: Gateway
let upstream: ReplayUpstream

afterEach(async () => {
  JSON.parse = parse
  JSON.stringify = stringify
  await gateway.stop()
  await upstream.stop()
})

test.each([
  ['chat', '/v1/responses'],
  ['responses', '/v1/responses'],
  ['chat', '/compat/v1/messages'],
  ['messages', '/compat/v1/messages'],
] as const)(
  'an event costs one parse, one stringify and one write from %s to %s',
  async (api, path) => {
    const frames = streams[api]()
    upstream = await startReplayUpstream({ body: frames.join(''), cutsAt: endsOf(frames) })
    gateway = await startGateway({
      upstream: [{ name: 'counted', api, url: upstream.baseUrl }],
      model: [{ name: 'm', upstreams: ['counted'] }],
    })
    const question = { port: gateway.port, token: await gateway.token(), path, body: bodies[path] }
    await sendRaw(question).chunks()
    const counts = countJson()
    const chunks = await sendRaw(question).chunks()
    const deltas = chunks.join('').split(`"word `).length - 1
    expect(deltas).toBeGreaterThanOrEqual(deltaCount)
    expect(chunks.length).toBeLessThanOrEqual(frames.length + besidesMax)
    expect(counts.parsed).toBeLessThanOrEqual(frames.length + besidesMax)
    expect(counts.written).toBeLessThanOrEqual(frames.length + besidesMax)
  },
)

const text = 'Say four hundred words.'
const bodies = {
  '/v1/responses': { model: 'm', input: text, stream: true, store: false },
  '/compat/v1/messages': {
    model: 'm',
    max_tokens: 1_000,
    stream: true,
    messages: [{ role: 'user', content: text }],
  },
}

/** From now on. */
function countJson() {
  const counts = { parsed: 0, written: 0 }
  JSON.parse = (...given: Parameters<typeof parse>) => {
    counts.parsed += 1
    return parse(...given)
  }
  JSON.stringify = ((...given: Parameters<typeof stringify>) => {
    counts.written += 1
    return stringify(...given)
  }) as typeof stringify
  return counts
}

/** The end of each frame except the last, in bytes. */
function endsOf(frames: readonly string[]): number[] {
  let end = 0
  return frames.slice(0, -1).map((frame) => (end += Buffer.byteLength(frame)))
}

const words = Array.from({ length: deltaCount }, (_, at) => `word ${at} `)
const frame = (data: object) => `data: ${stringify(data)}\n\n`
const named = (data: { type: string; [field: string]: unknown }) =>
  `event: ${data.type}\n${frame(data)}`

/** The events of a stream of these words, in the protocol of each upstream. */
const streams = {
  chat: () => [
    ...words.map((content) => frame(chunk({ delta: { content }, finish_reason: null }))),
    frame(chunk({ delta: {}, finish_reason: 'stop' })),
    'data: [DONE]\n\n',
  ],
  messages: () => [
    named({ type: 'message_start', message: emptyMessage }),
    named({
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'text', text: '' },
    }),
    ...words.map((word) =>
      named({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text: word },
      }),
    ),
    named({ type: 'content_block_stop', index: 0 }),
    named({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { output_tokens: 9 },
    }),
    named({ type: 'message_stop' }),
  ],
  responses: () => {
    const place = { item_id: 'msg_1', output_index: 0, content_index: 0 }
    const message = { id: 'msg_1', type: 'message', role: 'assistant' }
    const part = (content: string) => ({ type: 'output_text', text: content, annotations: [] })
    const done = { ...message, status: 'completed', content: [part(words.join(''))] }
    const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm' }
    const events = [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...message, content: [] } },
      { type: 'response.content_part.added', ...place, part: part('') },
      ...words.map((delta) => ({ type: 'response.output_text.delta', ...place, delta })),
      { type: 'response.output_text.done', ...place, text: words.join('') },
      { type: 'response.content_part.done', ...place, part: part(words.join('')) },
      { type: 'response.output_item.done', output_index: 0, item: done },
      {
        type: 'response.completed',
        response: { ...response, status: 'completed', output: [done] },
      },
    ]
    const numbered = events.map((event, at) => ({ ...event, sequence_number: at }))
    return numbered.map(named)
  },
}

const emptyMessage = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  stop_reason: null,
  usage: { input_tokens: 5, output_tokens: 1 },
}

function chunk(choice: object) {
  const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
  return { ...head, choices: [{ index: 0, ...choice }] }
}
