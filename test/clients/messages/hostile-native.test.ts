import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import {
  type MessageClients,
  scriptedAnswer,
  sdks,
  startMessageClients,
} from '#test/support/message-clients.ts'
import { blockEvents, messageStart, messageWire } from '#test/support/scripted-messages.ts'
import { type Outcome, sendWithEveryClient } from './every-client.ts'

/**
 * What breaks clients of the Messages format never reaches them, however a native upstream behaves.
 * The shared fetch validates the streams.
 */

let world: MessageClients
beforeAll(async () => {
  world = await startMessageClients({ retry: { retriesMax: 0 } })
})
afterAll(() => world.stop())
afterEach(() => world.upstream.answer(scriptedAnswer))

const start = (index: number, block: JsonObject) => ({
  type: 'content_block_start',
  index,
  content_block: block,
})
const delta = (index: number, fields: JsonObject) => ({
  type: 'content_block_delta',
  index,
  delta: fields,
})
const text = (index: number, words: string) => delta(index, { type: 'text_delta', text: words })
const json = (index: number, piece: string) =>
  delta(index, { type: 'input_json_delta', partial_json: piece })
const stop = (index: number) => ({ type: 'content_block_stop', index })
const shell = { type: 'text', text: '' }
const tool = (id: string) => ({ type: 'tool_use', id, name: 'get_weather', input: {} })
const end = (reason: string, fields: JsonObject = { usage: { output_tokens: 3 } }) => [
  { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, ...fields },
  { type: 'message_stop' },
]
const hi = { type: 'text', text: 'Hello' }
const user = { role: 'user' as const, content: 'Say hello.' }
const hello = blockEvents({ type: 'text', text: 'Hello wörld' }, 0)
const without = (field: string) => {
  const message: JsonObject = { ...messageStart.message }
  delete message[field]
  return { ...messageStart, message }
}

const expectedOutcome: Outcome = { text: 'Hello wörld', calls: [], stop: 'end_turn' }
const called: Outcome = { text: '', calls: [{ city: 'Oslo' }, { city: 'Rome' }], stop: 'tool_use' }

const scenarios: [never: string, events: JsonObject[] | string, outcome: Outcome][] = [
  [
    'comments and unused pings',
    `: hi\n\nevent: ping\ndata: {"type":"ping"}\n\n${messageWire([messageStart, ...hello, ...end('end_turn')])}: bye\n\n`,
    expectedOutcome,
  ],
  [
    'unknown fields',
    [
      { ...messageStart, trace: 1 },
      ...hello.map((event) => ({ ...event, trace: {} })),
      ...end('end_turn', { usage: { output_tokens: 3, glow: 1 } }),
    ],
    expectedOutcome,
  ],
  [
    'an unknown event',
    [messageStart, { type: 'vendor_trace', at: 1 }, ...hello, ...end('end_turn')],
    expectedOutcome,
  ],
  [
    'two calls interleaved',
    [
      messageStart,
      start(0, tool('a')),
      start(1, tool('b')),
      json(1, '{"city":'),
      json(0, '{"city":"Os'),
      json(1, '"Rome"}'),
      json(0, 'lo"}'),
      stop(1),
      stop(0),
      ...end('tool_use'),
    ],
    called,
  ],
  [
    'a first block at 1',
    [messageStart, ...blockEvents({ type: 'text', text: 'Hello wörld' }, 1), ...end('end_turn')],
    expectedOutcome,
  ],
  ['an end without usage', [messageStart, ...hello, ...end('end_turn', {})], expectedOutcome],
  ['a beginning without usage', [without('usage'), ...hello, ...end('end_turn')], expectedOutcome],
  [
    'usage that is null',
    [
      { ...messageStart, message: { ...messageStart.message, usage: { input_tokens: null } } },
      ...hello,
      ...end('end_turn', { usage: { output_tokens: null, input_tokens: null } }),
    ],
    expectedOutcome,
  ],
  [
    'a minimal message_start',
    [
      { type: 'message_start', message: { id: 'x', usage: { input_tokens: 1 } } },
      ...hello,
      ...end('end_turn'),
    ],
    expectedOutcome,
  ],
  ['no message_start', [...hello, ...end('end_turn')], expectedOutcome],
  [
    'two message_start events',
    [messageStart, messageStart, ...hello, ...end('end_turn')],
    expectedOutcome,
  ],
  [
    'thinking within a text',
    [
      messageStart,
      start(0, shell),
      delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
      text(0, 'Hello wörld'),
      stop(0),
      ...end('end_turn'),
    ],
    expectedOutcome,
  ],
  [
    'text within a call',
    [
      messageStart,
      start(0, tool('a')),
      text(0, 'so'),
      json(0, '{"city":"Oslo"}'),
      stop(0),
      ...blockEvents({ ...tool('b'), input: { city: 'Rome' } }, 1),
      ...end('tool_use'),
    ],
    { ...called, text: 'so' },
  ],
  [
    'input that is not JSON',
    [messageStart, start(0, tool('a')), json(0, '{"city": "Os'), stop(0), ...end('tool_use')],
    'failure',
  ],
  [
    'input that is not an object',
    [messageStart, start(0, tool('a')), json(0, '["Oslo"]'), stop(0), ...end('tool_use')],
    'failure',
  ],
  [
    'input in one piece',
    [
      messageStart,
      start(0, { ...tool('a'), input: { city: 'Oslo' } }),
      stop(0),
      start(1, { ...tool('b'), input: { city: 'Rome' } }),
      stop(1),
      ...end('tool_use'),
    ],
    called,
  ],
  [
    'one id for two calls',
    [
      messageStart,
      ...blockEvents({ ...tool('a'), input: { city: 'Oslo' } }, 0),
      ...blockEvents({ ...tool('a'), input: { city: 'Rome' } }, 1),
      ...end('tool_use'),
    ],
    called,
  ],
  [
    'an error in the middle',
    [
      messageStart,
      start(0, shell),
      text(0, 'Hello'),
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    ],
    'failure',
  ],
  [
    'an error instead of a response',
    [{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
    529,
  ],
  ['a truncated response', [messageStart, start(0, shell), text(0, 'Hello')], 'failure'],
  [
    'a response without its last event',
    [messageStart, ...hello, ...end('end_turn').slice(0, 1)],
    expectedOutcome,
  ],
  [
    'a block without its stop',
    [messageStart, ...hello.slice(0, -1), ...end('end_turn')],
    expectedOutcome,
  ],
  [
    'an empty text',
    [
      messageStart,
      start(0, shell),
      stop(0),
      ...blockEvents({ type: 'text', text: 'Hello wörld' }, 1),
      ...end('end_turn'),
    ],
    expectedOutcome,
  ],
  [
    'events after the end',
    [
      messageStart,
      ...hello,
      ...end('end_turn'),
      ...blockEvents({ type: 'text', text: 'More.' }, 1),
    ],
    expectedOutcome,
  ],
  [
    'a duplicated end',
    [messageStart, ...hello, ...end('end_turn').slice(0, 1), ...end('end_turn')],
    expectedOutcome,
  ],
  [
    'thinking without a signature',
    [
      messageStart,
      start(0, { type: 'thinking', thinking: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
      stop(0),
      ...blockEvents({ type: 'text', text: 'Hello wörld' }, 1),
      ...end('end_turn'),
    ],
    expectedOutcome,
  ],
  [
    'calls with another stop reason',
    [
      messageStart,
      ...blockEvents({ ...tool('a'), input: { city: 'Oslo' } }, 0),
      ...blockEvents({ ...tool('b'), input: { city: 'Rome' } }, 1),
      ...end('end_turn'),
    ],
    called,
  ],
  [
    'frames without names',
    messageWire([messageStart, ...hello, ...end('end_turn')]).replace(/^event: .*\n/gm, ''),
    expectedOutcome,
  ],
  [
    'the end of another protocol',
    `${messageWire([messageStart, ...hello, ...end('end_turn')])}data: [DONE]\n\n`,
    expectedOutcome,
  ],
]

test.each(scenarios)('no client receives %s', async (_, events, outcome) => {
  world.upstream.answer({ body: typeof events === 'string' ? events : messageWire(events) })
  await sendWithEveryClient(world, 'messages', outcome)
})

/** The protocol grows: clients may use features of the vendor that the gateway does not know. */
const later: [what: string, events: JsonObject[]][] = [
  [
    'a delta',
    [
      start(0, shell),
      delta(0, { type: 'sparkle_delta', glow: 1 }),
      text(0, 'Hello'),
      stop(0),
      ...end('end_turn'),
    ],
  ],
  [
    'a block',
    [start(0, { type: 'sparkle', glow: 1 }), stop(0), ...blockEvents(hi, 1), ...end('end_turn')],
  ],
  ['a reason to stop', [...blockEvents(hi, 0), ...end('sparkled')]],
]

test.each(later)('%s that only the upstream and the client know is relayed', async (_, events) => {
  world.upstream.answer({ body: messageWire([messageStart, ...events]) })
  for (const { Sdk } of sdks) {
    // The stream validation does not know it either.
    const client = world.client(Sdk, { fetch })
    const answer = client.messages.stream({ model: 'messages', max_tokens: 10, messages: [user] })
    const seen: unknown[] = await Array.fromAsync(answer)
    expect(JSON.stringify(seen)).toContain('sparkle')
    expect(await answer.finalText()).toBe('Hello')
  }
})
