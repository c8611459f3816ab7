import { afterAll, afterEach, beforeAll, test } from 'bun:test'
import {
  type MessageClients,
  scriptedAnswer,
  startMessageClients,
} from '#test/support/message-clients.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { type Outcome, sendWithEveryClient } from './every-client.ts'

/**
 * What breaks clients of the Messages format never reaches them, however a chat upstream behaves.
 * The shared fetch validates the streams.
 */

let world: MessageClients
beforeAll(async () => {
  world = await startMessageClients({ retry: { retriesMax: 0 } })
})
afterAll(() => world.stop())
afterEach(() => world.upstream.answer(scriptedAnswer))

const text = (content: string | null, finish: string | null = null) => chunk({ content }, finish)
const calls = (...pieces: object[]) => chunk({ tool_calls: pieces })
const call = (index: number | undefined, id: string | undefined, args: unknown, name?: string) => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id, type: 'function' }),
  function: { ...(name === undefined ? {} : { name }), arguments: args },
})
const weather = 'get_weather'
const done = chunk({}, 'stop')
const usage = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } }
const hello = [text('Hello '), text('wörld')]

const expectedOutcome: Outcome = { text: 'Hello wörld', calls: [], stop: 'end_turn' }
const called: Outcome = { text: '', calls: [{ city: 'Oslo' }, { city: 'Rome' }], stop: 'tool_use' }
const [oslo, rome] = ['{"city":"Oslo"}', '{"city":"Rome"}']

const scenarios: [never: string, body: unknown[] | string, outcome: Outcome][] = [
  [
    'comments and empty lines',
    `: hi\n\n\n${chatStream([...hello, done, usage]).replaceAll('\n\n', '\n\n: more\n\n')}`,
    expectedOutcome,
  ],
  [
    'other line endings',
    chatStream([...hello, done, usage]).replaceAll('\n', '\r\n'),
    expectedOutcome,
  ],
  [
    'unknown chunks',
    [
      { object: 'trace' },
      ...hello,
      { choices: [] },
      { choices: [{ index: 0, delta: { glow: 1 } }] },
      done,
      usage,
    ],
    expectedOutcome,
  ],
  ['an unknown finish reason', [...hello, chunk({}, 'tired'), usage], expectedOutcome],
  ['no usage', [...hello, done], expectedOutcome],
  [
    'usage in each chunk',
    [...hello.map((piece) => ({ ...piece, ...usage, choices: piece.choices })), done],
    expectedOutcome,
  ],
  [
    'invalid usage',
    [...hello, done, { choices: [], usage: { prompt_tokens: -1, completion_tokens: 'x' } }],
    expectedOutcome,
  ],
  [
    'two calls interleaved',
    [
      calls(call(0, 'a', '{"city":', weather)),
      calls(call(1, 'b', '{"ci', weather)),
      calls(call(0, undefined, '"Oslo"}'), call(1, undefined, 'ty":"Rome"}')),
      chunk({}, 'tool_calls'),
      usage,
    ],
    called,
  ],
  [
    'calls in one chunk',
    [calls(call(0, 'a', oslo, weather), call(1, 'b', rome, weather)), chunk({}, 'tool_calls')],
    called,
  ],
  [
    'a call whose id and name are repeated',
    [
      calls(call(0, 'a', '{"city":', weather)),
      calls(call(0, 'a', '"Oslo"}', weather)),
      calls(call(1, 'b', rome, weather)),
      done,
    ],
    called,
  ],
  [
    'calls without an index',
    [calls(call(undefined, 'a', oslo, weather)), calls(call(undefined, 'b', rome, weather)), done],
    called,
  ],
  [
    'calls without an id',
    [calls(call(0, '', oslo, weather)), calls(call(1, '', rome, weather)), done],
    called,
  ],
  [
    'ids with invalid characters',
    [
      calls(call(0, 'functions.get:0', oslo, weather)),
      calls(call(1, 'functions.get:1', rome, weather)),
      done,
    ],
    called,
  ],
  [
    'one id for two calls',
    [calls(call(0, 'a', oslo, weather), call(1, 'a', rome, weather)), done],
    called,
  ],
  [
    'arguments as an object',
    [calls(call(0, 'a', { city: 'Oslo' }, weather)), calls(call(1, 'b', rome, weather)), done],
    called,
  ],
  [
    'no arguments',
    [calls(call(0, 'a', '', weather)), done],
    { text: '', calls: [{}], stop: 'tool_use' },
  ],
  [
    'an empty text before a call',
    [text(''), text(null), calls(call(0, 'a', oslo, weather), call(1, 'b', rome, weather)), done],
    called,
  ],
  [
    'a call without the end of a text',
    [
      {
        ...text('Let me see.'),
        choices: [
          {
            index: 0,
            delta: { content: 'Let me see.', tool_calls: [call(0, 'a', oslo, weather)] },
            finish_reason: null,
          },
        ],
      },
      done,
    ],
    { text: 'Let me see.', calls: [{ city: 'Oslo' }], stop: 'tool_use' },
  ],
  [
    'text after calls',
    [calls(call(0, 'a', oslo, weather)), text('So.'), done],
    { text: 'So.', calls: [{ city: 'Oslo' }], stop: 'tool_use' },
  ],
  [
    'reasoning within a text',
    [text('Hello '), chunk({ reasoning_content: 'Hm.' }), text('wörld'), done],
    expectedOutcome,
  ],
  ['arguments that are not JSON', [calls(call(0, 'a', '{"city": "Os', weather)), done], 'failure'],
  ['arguments that are not an object', [calls(call(0, 'a', '["Oslo"]', weather)), done], 'failure'],
  [
    'an error in the middle',
    [...hello, { error: { message: 'Out of memory', type: 'server_error', code: null } }],
    'failure',
  ],
  [
    'an error instead of a response',
    [{ error: { message: 'Overloaded', type: 'overloaded_error', code: 529 } }],
    529,
  ],
  ['an empty response', [done, usage], { text: '', calls: [], stop: 'end_turn' }],
  ['a response without its end', chatStream(hello).replace('data: [DONE]\n\n', ''), 'failure'],
  ['an end without a reason', hello, expectedOutcome],
  ['text after the end', [...hello, done, text(' and more'), usage], expectedOutcome],
  ['a duplicated end', [...hello, done, done, usage], expectedOutcome],
  [
    'a filtered response',
    [text('Hello wörld'), chunk({}, 'content_filter')],
    { text: 'Hello wörld', calls: [], stop: 'refusal' },
  ],
]

test.each(scenarios)('no client receives %s', async (_, events, outcome) => {
  world.upstream.answer({ body: typeof events === 'string' ? events : chatStream(events) })
  await sendWithEveryClient(world, 'chat', outcome)
})
