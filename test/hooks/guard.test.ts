import { expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { loadConfig } from '#config/load.ts'
import { hookEntry } from '#hooks/config.ts'
import { withHooks } from '#hooks/guard.ts'
import type { Checks, HookText } from '#hooks/hook.ts'
import { loadHooks } from '#hooks/load.ts'
import { hooksModule } from '#hooks/module.ts'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { Generate, GenerationJob } from '#inference/inference.ts'
import { createMetricRegistry } from '#telemetry/metrics.ts'
import { createDice } from '#test/support/dice.ts'
import { collectEvents, makeRequest, makeRequestContext } from '#test/support/generation.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { rollGeneration } from '#test/support/rolled-events.ts'

/** Generations of every kind through hooks. */

const job: GenerationJob = {
  context: makeRequestContext(),
  request: makeRequest(),
  targets: [],
}
const textsOf = (events: readonly GenerationEvent[]) => JSON.stringify(events)

function guarded(generate: Generate, checks: Checks, heldCharsMax = 100_000) {
  const outcomes: string[] = []
  const hook = {
    name: 'h',
    deadlineMs: 1_000,
    heldCharsMax,
    applies: () => true,
    begin: () => checks,
  }
  const log = { info() {}, warn() {} }
  const run = withHooks(generate, [hook], {
    log,
    onChecked: ({ outcome }) => outcomes.push(outcome),
  })
  return { run, outcomes }
}

/** Divides events into batches; a failure before any output is thrown, as adapters do. */
function generates(events: readonly GenerationEvent[], dice: { upTo(count: number): number }) {
  return async function* (): AsyncGenerator<EventBatch, void, void> {
    const first = events.findIndex(({ type }) => type !== 'generation-start')
    const end = events[first]
    if (end?.type === 'error') throw end.error
    let at = first + 1
    let batch = events.slice(0, at)
    for (;;) {
      yield batch
      if (at === events.length) return
      const next = at + 1 + dice.upTo(4)
      batch = events.slice(at, next)
      at = Math.min(next, events.length)
    }
  }
}

const upper = (text: string) => text.replaceAll('one', 'ONE')
const stages = ['output', 'after'] as const

test.each(stages)(
  '%s: random generations keep the grammar, whatever the hook decides',
  async (stage) => {
    const seen = { refused: 0, changed: 0, allowed: 0 }
    for (let seed = 0; seed < 400; seed++) {
      const dice = createDice(seed)
      const events = rollGeneration(dice)
      const decision = seed % 3
      let checksLeft = dice.upTo(3)
      const { run } = guarded(generates(events, dice), {
        [stage]: (texts: readonly HookText[]) => {
          if (decision === 0) return undefined
          if (decision === 1) return { texts: texts.map(({ text }) => upper(text)) }
          return checksLeft-- <= 0 ? { refuse: 'no' } : undefined
        },
      })
      const { events: got, error } = await collectEvents(run(job))
      const last = got.at(-1)
      const kind = error?.kind ?? (last?.type === 'error' ? last.error.kind : null)
      if (kind === 'content_refused') seen.refused++
      else if (decision === 1 && textsOf(got).includes('ONE')) seen.changed++
      else if (decision === 0 && last?.type === 'finish') seen.allowed++
      // No text may pass that the hook replaced.
      if (decision === 1) expect(textsOf(got)).not.toContain('one ')
      expect(['upstream_error', 'content_refused', null]).toContain(kind)
    }
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(20)
  },
)

const text = (...pieces: string[]): GenerationEvent[] => [
  { type: 'generation-start' },
  { type: 'text-start', block: 0, form: 'answer' },
  ...pieces.map((piece) => ({ type: 'text-delta', block: 0, text: piece }) as const),
  {
    type: 'citation',
    block: 0,
    citation: { kind: 'url', url: 'u', title: 't', startIndex: 0, endIndex: 1 },
  },
  { type: 'text-end', block: 0, complete: true },
  { type: 'finish', reason: 'stop', rawReason: null, usage: null },
]
const oneByOne = (events: readonly GenerationEvent[]): Generate =>
  async function* () {
    yield events.slice(0, 3)
    for (const event of events.slice(3)) yield [event]
  }

test('a check of the whole output sees each block as one text, and nothing is sent before', async () => {
  const given: string[][] = []
  const { run } = guarded(oneByOne(text('a', 'b', 'c')), {
    after: (texts) => void given.push(texts.map(({ kind, text: one }) => `${kind} ${one}`)),
  })
  const batches: EventBatch[] = []
  for await (const batch of run(job)) batches.push(batch)
  expect(given).toEqual([['assistant abc', expect.stringContaining('citation {')]])
  expect(batches).toHaveLength(1)
})

test('what the upstream said of a replaced text is not passed on', async () => {
  const { run } = guarded(oneByOne(text('a', 'b')), {
    output: (texts) => ({
      texts: texts.map(({ kind, text: one }) => (kind === 'citation' ? one : 'x')),
    }),
  })
  const { events } = await collectEvents(run(job))
  expect(events.map(({ type }) => type)).not.toContain('citation')
  expect(events.filter(({ type }) => type === 'text-delta')).toHaveLength(2)
})

test('original frames of a protocol do not pass a check', async () => {
  const frame = { payload: {}, data: '{}' }
  const relay = { protocol: 'messages', frames: [frame], maker: 'm' } as const
  const generate: Generate = async function* () {
    yield Object.assign(text('a'), { relay })
  }
  for (const stage of [...stages, 'before'] as const) {
    const { run } = guarded(generate, { [stage]: () => undefined })
    const relays: unknown[] = []
    for await (const batch of run(job)) relays.push(batch.relay)
    expect(relays).toEqual([stage === 'before' ? relay : undefined])
  }
})

test('output that is too long to be checked as a whole is refused', async () => {
  const pieces = Array.from({ length: 30 }, () => 'x'.repeat(100))
  const { run } = guarded(oneByOne(text(...pieces)), { after: () => undefined }, 2_000)
  const { events, error } = await collectEvents(run(job))
  expect([events, error?.kind]).toEqual([[], 'content_refused'])
})

test('a request whose texts were replaced does not go out in its original form', async () => {
  const asked: GenerationJob[] = []
  const generate: Generate = async function* (given) {
    asked.push(given)
    yield text('a')
  }
  const body = {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'search_result', title: 'T', content: [{ type: 'text', text: 'hidden' }] },
        ],
      },
    ],
  }
  const origin = { protocol: 'messages', body, headers: {}, openSeal: () => null } as const
  const request = makeRequest({ instructions: 'one', origin })
  const given: string[] = []
  const { run } = guarded(generate, {
    before: (texts) => {
      given.push(...texts.map(({ kind, text: one }) => `${kind} ${one}`))
      return { texts: texts.map(({ text: one }) => upper(one)) }
    },
  })
  await collectEvents(run({ ...job, request }))
  expect(given).toEqual(['instructions one', 'user Hello', 'other T', 'other hidden'])
  expect(asked[0]?.request.instructions).toBe('ONE')
  expect(asked[0]?.request.origin).toBeUndefined()
})

test('without hooks in the configuration, generations are not wrapped', async () => {
  const config = loadConfig({})
  const metrics = createMetricRegistry({ seriesMax: 100 })
  const started = await hooksModule.start?.({ config, fetch, log: quietLog, metrics } as never)
  const generate = oneByOne(text('a'))
  expect(started?.services.guardGenerate(generate)).toBe(generate)
})

test('a hook that cannot be loaded ends the start with its name', async () => {
  const load = (entry: object) => {
    const hook = [Value.Parse(hookEntry, { name: 'mine', module: 'moderation', ...entry })]
    return loadHooks({ hook, upstream: [] }, { fetch }).catch(String)
  }
  const failed = 'StartError: The hook "mine"'
  expect(await load({ module: './nowhere.ts' })).toStartWith(`${failed} (./nowhere.ts) failed`)
  expect(await load({ options: { upstream: 'none' } })).toEndWith('there is no upstream "none"')
  expect(await load({ options: {} })).toContain('options/upstream')
})

test('the checks of several hooks see what the former made of the texts', async () => {
  const { run: inner } = guarded(oneByOne(text('one')), {
    output: (texts) => ({ texts: texts.map(({ text: given }) => upper(given)) }),
  })
  const { run } = guarded(inner, {
    output: (texts) =>
      texts.some(({ text: given }) => given.includes('ONE')) ? { refuse: 'no' } : undefined,
  })
  expect((await collectEvents(run(job))).error?.kind).toBe('content_refused')
})
