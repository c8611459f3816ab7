import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import {
  faultsOfEvent,
  faultsOfResponse,
  openResponsesExists,
} from '#test/support/open-responses.ts'
import { chatStream } from '#test/support/recordings.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import { checkStream, readFrames } from '#test/support/response-frames.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/**
 * Validates every event and every Response object against the published document of Open Responses.
 */

const usage = {
  choices: [],
  usage: {
    prompt_tokens: 7,
    completion_tokens: 3,
    total_tokens: 10,
    prompt_tokens_details: { cached_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 1 },
  },
}
const call = (index: number, pieces: [id: string | undefined, text: string]) => ({
  tool_calls: [
    {
      index,
      ...(pieces[0] === undefined ? {} : { id: pieces[0], type: 'function' }),
      function: {
        ...(pieces[0] === undefined ? {} : { name: 'get_weather' }),
        arguments: pieces[1],
      },
    },
  ],
})
const logprob = { token: 'Hi', logprob: -0.1, bytes: [72, 105] }
const weather = { type: 'function', name: 'get_weather', parameters: { type: 'object' } }
const finished = (...deltas: object[]) =>
  chatStream([...deltas.map((delta) => chunk(delta)), chunk({}, 'stop'), usage])
const unfinished = (...deltas: object[]) =>
  deltas.map((delta) => `data: ${JSON.stringify(chunk(delta))}\n\n`).join('')

type Scenario = { what: string; body: string; status: string; request?: object }

const scenarios: Scenario[] = [
  {
    what: 'text',
    body: finished({ content: 'Hello ' }, { content: 'wörld' }),
    status: 'completed',
  },
  {
    what: 'text with log probabilities',
    body: chatStream([
      {
        choices: [
          {
            index: 0,
            delta: { content: 'Hi' },
            logprobs: { content: [{ ...logprob, top_logprobs: [logprob] }] },
          },
        ],
      },
      chunk({}, 'stop'),
    ]),
    status: 'completed',
    request: { top_logprobs: 1, include: ['message.output_text.logprobs'] },
  },
  {
    what: 'text with citations',
    body: chatStream([
      { ...chunk({ content: 'So it is.' }), citations: ['https://example.org/a'] },
      { ...chunk({}, 'stop'), citations: ['https://example.org/a'] },
    ]),
    status: 'completed',
  },
  {
    what: 'two tool calls',
    body: finished(
      call(0, ['a', '{"city":']),
      call(0, [undefined, '"Oslo"}']),
      call(1, ['b', '{}']),
    ),
    status: 'completed',
    request: { tools: [weather], tool_choice: 'required' },
  },
  {
    what: 'reasoning and text',
    body: finished(
      { reasoning_content: 'Hm, ' },
      { reasoning_content: 'yes.' },
      { content: 'Yes.' },
    ),
    status: 'completed',
    request: { reasoning: { effort: 'low', summary: 'auto' } },
  },
  {
    what: 'a refusal',
    body: finished({ refusal: 'I will ' }, { refusal: 'not.' }),
    status: 'completed',
  },
  {
    what: 'text truncated at the output limit',
    body: chatStream([chunk({ content: 'Hel' }), chunk({}, 'length'), usage]),
    status: 'incomplete',
    request: { max_output_tokens: 1 },
  },
  {
    what: 'a call truncated by a filter',
    body: chatStream([chunk(call(0, ['a', '{"ci'])), chunk({}, 'content_filter')]),
    status: 'incomplete',
    request: { tools: [weather] },
  },
  { what: 'a failure in a text', body: unfinished({ content: 'Hel' }), status: 'failed' },
  {
    what: 'a failure in a call',
    body: unfinished({ content: 'Now: ' }, call(0, ['a', '{"ci'])),
    status: 'failed',
  },
  {
    what: 'a failure in reasoning',
    body: unfinished({ reasoning_content: 'Hm' }),
    status: 'failed',
  },
]

/** Requests whose echo is part of the Response object. */
const echoes: [what: string, request: object][] = [
  ['nothing', {}],
  ['instructions and sampling', { instructions: 'Be kind.', temperature: 0.5, top_p: 0.9 }],
  ['penalties', { presence_penalty: 0.1, frequency_penalty: -0.1, top_logprobs: 2 }],
  ['limits', { max_output_tokens: 5, max_tool_calls: 2, truncation: 'auto' }],
  ['names', { prompt_cache_key: 'k', safety_identifier: 's', service_tier: 'flex', store: false }],
  ['metadata', { metadata: { a: 'b' }, parallel_tool_calls: false }],
  ['verbosity', { text: { verbosity: 'low' } }],
  ['JSON', { text: { format: { type: 'json_object' } } }],
  ['a minimal tool', { tools: [weather] }],
  ['a forced tool', { tools: [weather], tool_choice: { type: 'function', name: 'get_weather' } }],
  [
    'allowed tools',
    {
      tools: [weather],
      tool_choice: {
        type: 'allowed_tools',
        mode: 'auto',
        tools: [{ type: 'function', name: 'get_weather' }],
      },
    },
  ],
  ['reasoning', { reasoning: { effort: 'high' } }],
]

/** Where the OpenAI clients require another form than the document. */
const exceptions: [what: string, request: object, faults: string[]][] = [
  [
    'it repeats the schema of the output format',
    { text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' } } } },
    ['.text.format.schema: is not of type null'],
  ],
  [
    'it repeats tools of every type',
    {
      tools: [{ type: 'web_search', description: null, name: 'n', parameters: null, strict: null }],
    },
    ['.tools[0].type: "web_search" is not one of function'],
  ],
  [
    'it repeats every effort',
    { reasoning: { effort: 'minimal' } },
    ['.reasoning.effort: "minimal" is not one of none, low, medium, high, xhigh'],
  ],
]

describe.skipIf(!openResponsesExists)('the schema of Open Responses', () => {
  let upstream: ReplayUpstream
  let gateway: Gateway

  beforeAll(async () => {
    upstream = await upstreamThat({})
    gateway = await startGateway({
      upstream: [{ url: upstream.baseUrl, models: ['m'] }],
      stream: { heartbeatMs: 10 },
      unsupportedTools: 'drop',
    })
  })
  afterAll(async () => {
    await gateway.stop()
    await stopUpstreams()
  })

  const ask = (request: object, stream: boolean) =>
    gateway.post('/v1/responses', { model: 'm', input: 'x', stream, ...request })

  test.each(scenarios)('accepts $what', async ({ body, status, request = {} }) => {
    // Pauses, so that heartbeats contain partial items.
    const cutsAt = [...body.matchAll(/\n\n/g)].map(({ index }) => index + 2)
    upstream.answer({ body, cutsAt, pauseMs: 25 })
    const wire = await (await ask(request, true)).text()
    const faults = readFrames(wire).flatMap((frame) =>
      faultsOfEvent(frame).map((fault) => `${frame.type}${fault}`),
    )
    expect(faults).toEqual([])
    const { response } = checkStream(wire)
    expect(response['status']).toBe(status)
    expect(faultsOfResponse(response)).toEqual([])
    if (status === 'failed') return
    expect(faultsOfResponse(await (await ask(request, false)).json())).toEqual([])
  })

  test.each(echoes)('accepts the echo of %s', async (what, request) => {
    // A response without the forced call would be refused.
    const delta = what === 'a forced tool' ? call(0, ['call_1', '{}']) : { content: 'Hi' }
    upstream.answer({ body: finished(delta) })
    expect(faultsOfResponse(await (await ask(request, false)).json())).toEqual([])
  })

  test.each(exceptions)('rejects a response where %s', async (_what, request, faults) => {
    upstream.answer({ body: finished({ content: 'Hi' }) })
    expect(faultsOfResponse(await (await ask(request, false)).json())).toEqual(faults)
  })

  test('detects each missing field', async () => {
    upstream.answer({ body: finished({ content: 'Hi' }) })
    const response: unknown = await (await ask({}, false)).json()
    for (const field of Object.keys(Object(response))) {
      const { [field]: _, ...rest } = Object(response)
      expect(faultsOfResponse(rest)).toEqual([`.${field}: is missing`])
    }
  })
})
