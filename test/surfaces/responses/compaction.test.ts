import { afterEach, describe, expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { readCompaction } from '#surfaces/responses/compacted-context.ts'
import {
  type CompactionRules,
  compactContext,
  withCompaction,
} from '#surfaces/responses/compaction.ts'
import { makeRequest, makeRequestContext, userMessage } from '#test/support/generation.ts'
import {
  collect,
  failure,
  json,
  start,
  stopUpstreams,
  target,
  texts,
} from '#test/support/generations.ts'
import { checkEvents } from '#test/support/grammar.ts'
import { chatStream } from '#test/support/recordings.ts'
import {
  type ReplayAnswer,
  type ReplayUpstream,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { testSeals } from '#test/support/sealing.ts'

const upstreams: ReplayUpstream[] = []
afterEach(async () => {
  await stopUpstreams()
  for (const upstream of upstreams.splice(0)) await upstream.stop()
})

const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
const says = (text: string): ReplayAnswer => ({
  body: chatStream([chunk({ content: text }), chunk({}, 'stop'), { choices: [], usage }]),
})

/** An upstream that summarizes on request, and otherwise responds normally. */
async function upstreamThat(answers: { summary?: ReplayAnswer; answer?: ReplayAnswer } = {}) {
  const { summary = says('SUMMARY'), answer = says('Answer.') } = answers
  const upstream = await startReplayUpstream(({ body }) =>
    body.includes('You condense conversations') ? summary : answer,
  )
  upstreams.push(upstream)
  return {
    upstream,
    bodies: () => upstream.requests.map(({ body }) => JSON.parse(body)),
  }
}

const assistant = (text: string): GenerationRequest['items'][number] => ({
  type: 'message',
  role: 'assistant',
  parts: [{ type: 'text', text }],
})
const long = [
  userMessage('First question.'),
  assistant(`It is so. ${'word '.repeat(500)}`),
  userMessage('Second question.'),
]

function run(
  upstream: ReplayUpstream,
  rules: Partial<CompactionRules>,
  options: { items?: GenerationRequest['items']; contextWindow?: number } = {},
) {
  const { inference } = start()
  const generate = withCompaction(inference.generate, {
    summarise: inference.generate,
    seal: testSeals.compaction,
    rules: { now: false, threshold: null, ...rules },
    contextWindow: options.contextWindow ?? null,
  })
  const request = makeRequest({
    items: options.items ?? long,
    instructions: 'Be brief.',
    tools: [{ type: 'function', name: 'look', description: null, parameters: null, strict: null }],
    format: { type: 'json-object' },
  })
  return checkEvents(
    generate({
      request,
      targets: [target(upstream.baseUrl)],
      context: makeRequestContext(),
    }),
  )
}

const compactionsIn = (events: readonly GenerationEvent[]) =>
  events.flatMap((event) => {
    if (event.type !== 'hosted-tool-end' || event.item === null) return []
    const sealed = String(event.item['encrypted_content'])
    return [readCompaction(testSeals.compaction.open(sealed) ?? '')]
  })

describe('a context above the threshold', () => {
  test('is summarized first, and the output is based on the summary', async () => {
    const { upstream, bodies } = await upstreamThat()
    const events = await collect(run(upstream, { threshold: 400 }))
    const [asked, answered, ...more] = bodies()
    expect(more).toEqual([])

    expect(asked.messages[0]).toMatchObject({ role: 'system' })
    expect(asked.messages[1].content).toStartWith(
      '[user]\nFirst question.\n\n[assistant]\nIt is so.',
    )
    expect(asked).not.toHaveProperty('tools')
    expect(asked).not.toHaveProperty('response_format')

    expect(answered.messages.map(({ role }: { role: string }) => role)).toEqual([
      'system',
      'user',
      'user',
    ])
    expect(answered.messages[0].content).toMatch(/^Be brief\.\n\n\[Summary .*SUMMARY$/s)
    expect(JSON.stringify(answered.messages)).not.toContain('It is so')
    expect(answered.messages.at(-1).content).toBe('Second question.')
    expect(answered.tools).toHaveLength(1)
    expect(answered.response_format).toEqual({ type: 'json_object' })

    expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
      'generation-start',
      'hosted-tool-start',
      'hosted-tool-end',
    ])
    expect(compactionsIn(events)).toMatchObject([{ summary: 'SUMMARY', tail: [] }])
    expect(texts(events)).toBe('Answer.')
    expect(events.at(-1)).toMatchObject({
      type: 'finish',
      usage: { inputTokens: 14, outputTokens: 6, totalTokens: 20 },
    })
  })

  test('is unchanged if a summary would save nothing', async () => {
    const { upstream, bodies } = await upstreamThat()
    const items = [userMessage('word '.repeat(500))]
    const events = await collect(run(upstream, { threshold: 100 }, { items }))
    expect(bodies()).toHaveLength(1)
    expect(compactionsIn(events)).toEqual([])
  })

  test.each([
    [1_000, 0],
    [500, 1],
  ])(
    'without an explicit threshold, the context window applies: %i',
    async (contextWindow, count) => {
      const { upstream } = await upstreamThat()
      const events = await collect(run(upstream, { threshold: 'by-model' }, { contextWindow }))
      expect(compactionsIn(events)).toHaveLength(count)
    },
  )

  test.each([{ threshold: 100_000 }, { threshold: null }, { threshold: 'by-model' as const }])(
    'below the threshold, or without one, is unchanged: %j',
    async (rules) => {
      const { upstream, bodies } = await upstreamThat()
      const events = await collect(run(upstream, rules))
      expect(bodies()).toHaveLength(1)
      expect(compactionsIn(events)).toEqual([])
    },
  )

  test('a failure of the summary, or before the first token of the output, is thrown', async () => {
    const refused = { status: 400, headers: json, body: '{"error":{"message":"No."}}' }
    for (const answers of [{ summary: refused }, { answer: refused }]) {
      const { upstream } = await upstreamThat(answers)
      expect(await failure(run(upstream, { threshold: 400 }))).toMatchObject({ status: 400 })
    }
  })

  test('a truncated summary is used, and an empty one is replaced by the transcript', async () => {
    const cut = { body: chatStream([chunk({ content: 'It begins' }), chunk({}, 'length')]) }
    const silent = { body: chatStream([chunk({ reasoning: 'Hm.' }), chunk({}, 'stop')]) }
    const summaryOf = async (summary: ReplayAnswer) => {
      const { upstream } = await upstreamThat({ summary })
      return compactionsIn(await collect(run(upstream, { threshold: 400 })))[0]?.summary
    }
    expect(await summaryOf(cut)).toBe('It begins')
    expect(await summaryOf(silent)).toEndWith('[user]\nSecond question.')
  })
})

describe('a requested compaction', () => {
  test('is the only output', async () => {
    const { upstream, bodies } = await upstreamThat()
    const events = await collect(run(upstream, { now: true, threshold: 1 }))
    expect(bodies()).toHaveLength(1)
    expect(events.map(({ type }) => type)).toEqual([
      'generation-start',
      'hosted-tool-start',
      'hosted-tool-end',
      'finish',
    ])
    expect(compactionsIn(events)).toMatchObject([{ summary: 'SUMMARY' }])
    expect(events.at(-1)).toMatchObject({ reason: 'stop', usage: { totalTokens: 10 } })
  })

  test('as a context contains the user messages in plain text, and always a usage', async () => {
    const body = chatStream([chunk({ content: 'SUMMARY' }), chunk({}, 'stop')])
    const { upstream } = await upstreamThat({ summary: { body } })
    const { inference } = start()
    const window = await compactContext(
      { summarise: inference.generate, seal: testSeals.compaction },
      {
        request: makeRequest({ items: long }),
        targets: [target(upstream.baseUrl)],
        context: makeRequestContext(),
      },
    )
    expect<unknown>(window.questions).toEqual([long[0], long[2]])
    expect(readCompaction(testSeals.compaction.open(window.sealed) ?? '')).toEqual({
      summary: 'SUMMARY',
      instructions: [],
      questions: null,
      tail: [],
    })
    expect(window.usage.inputTokens).toBeGreaterThan(500)
    expect(window.usage.outputTokens).toBeGreaterThan(0)
  })
})
