import { afterAll, afterEach, beforeAll, test } from 'bun:test'
import {
  type MessageClients,
  scriptedAnswer,
  startMessageClients,
} from '#test/support/message-clients.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { askEverybody, type Outcome } from './everybody.ts'

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
    'lines that end otherwise',
    chatStream([...hello, done, usage]).replaceAll('\n', '\r\n'),
    expectedOutcome,
  ],
  [
    'chunks that nobody knows',
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
  ['a reason to stop that nobody knows', [...hello, chunk({}, 'tired'), usage], expectedOutcome],
  ['usage that never comes', [...hello, done], expectedOutcome],
  [
    'usage in each chunk',
    [...hello.map((piece) => ({ ...piece, ...usage, choices: piece.choices })), done],
    expectedOutcome,
  ],
  [
    'usage that is none',
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
    'a call whose id and name come again',
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
    'ids in signs that may not be sent back',
    [
      calls(call(0, 'functions.get:0', oslo, weather)),
      calls(call(1, 'functions.get:1', rome, weather)),
      done,
    ],
    called,
  ],
  [
    'one id of two calls',
    [calls(call(0, 'a', oslo, weather), call(1, 'a', rome, weather)), done],
    called,
  ],
  [
    'arguments that are an object',
    [calls(call(0, 'a', { city: 'Oslo' }, weather)), calls(call(1, 'b', rome, weather)), done],
    called,
  ],
  [
    'no arguments',
    [calls(call(0, 'a', '', weather)), done],
    { text: '', calls: [{}], stop: 'tool_use' },
  ],
  [
    'an empty text in front of a call',
    [text(''), text(null), calls(call(0, 'a', oslo, weather), call(1, 'b', rome, weather)), done],
    called,
  ],
  [
    'a call that begins where a text ends',
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
    'text behind calls',
    [calls(call(0, 'a', oslo, weather)), text('So.'), done],
    { text: 'So.', calls: [{ city: 'Oslo' }], stop: 'tool_use' },
  ],
  [
    'thoughts in the middle of a text',
    [text('Hello '), chunk({ reasoning_content: 'Hm.' }), text('wörld'), done],
    expectedOutcome,
  ],
  ['arguments that are no JSON', [calls(call(0, 'a', '{"city": "Os', weather)), done], 'failure'],
  ['arguments that are no object', [calls(call(0, 'a', '["Oslo"]', weather)), done], 'failure'],
  [
    'an error in the middle',
    [...hello, { error: { message: 'Out of memory', type: 'server_error', code: null } }],
    'failure',
  ],
  [
    'an error in place of an answer',
    [{ error: { message: 'Overloaded', type: 'overloaded_error', code: 529 } }],
    529,
  ],
  ['an answer that says nothing', [done, usage], { text: '', calls: [], stop: 'end_turn' }],
  ['an answer without its end', chatStream(hello).replace('data: [DONE]\n\n', ''), 'failure'],
  ['an end without a reason', hello, 'failure'],
  ['text behind the end', [...hello, done, text(' and more'), usage], expectedOutcome],
  ['an end that comes twice', [...hello, done, done, usage], expectedOutcome],
  [
    'an answer that is filtered',
    [text('Hello wörld'), chunk({}, 'content_filter')],
    { text: 'Hello wörld', calls: [], stop: 'refusal' },
  ],
]

test.each(scenarios)('no client receives %s', async (_, events, outcome) => {
  world.upstream.answer({ body: typeof events === 'string' ? events : chatStream(events) })
  await askEverybody(world, 'chat', outcome)
})
