import type { GenerationEvent } from '#inference/events.ts'
import { createInference, type InferenceDeps } from '#inference/inference.ts'
import type { CallRecord } from '#inference/open-call.ts'
import { createRouter, type Router } from '#inference/routing/router.ts'
import type { Target } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { checkEvents } from '#test/support/grammar.ts'
import { adaptersWithoutModels } from './adapters.ts'
import { defaultQuirks, makeRequest, makeRequestContext } from './generation.ts'
import { chatStream } from './recordings.ts'
import { type ReplayAnswer, type ReplayUpstream, startReplayUpstream } from './replay-upstream.ts'
import { openTransport } from './transport.ts'

/** Generations over real sockets to a scripted upstream. */

const chunk = (delta: object, finish: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
})
/** A complete response: "one two". */
export const whole = chatStream([
  chunk({ content: 'one ' }),
  chunk({ content: 'two' }),
  chunk({}, 'stop'),
])
/** Its first event. */
export const begun = `data: ${JSON.stringify(chunk({ content: 'one ' }))}\n\n`
/** A response with two finish reasons. */
export const twice = chatStream([
  chunk({ content: 'one' }, 'stop'),
  chunk({ content: ' two' }, 'stop'),
])
export const json = { 'content-type': 'application/json' }

const started: { stop(): Promise<void> }[] = []

/** Returns the responses in order, and repeats the last one. */
export async function upstreamThat(...answers: ReplayAnswer[]): Promise<ReplayUpstream> {
  const queue = [...answers]
  const upstream = await startReplayUpstream(
    () => (queue.length > 1 ? queue.shift() : queue[0]) ?? {},
  )
  started.push(upstream)
  return upstream
}

export async function stopUpstreams(): Promise<void> {
  for (const upstream of started.splice(0)) await upstream.stop()
}

export function target(baseUrl: string, name = 'first'): Target {
  const upstream = { name, kind: 'chat', baseUrl, key: undefined, headers: {} } as const
  return { upstream: { ...upstream, quirks: defaultQuirks }, model: 'upstream-name' }
}

export type Overrides = {
  adapters?: InferenceDeps['adapters']
  deadlines?: Partial<InferenceDeps['deadlines']>
  retry?: Partial<InferenceDeps['retry']>
  limits?: Partial<InferenceDeps['limits']>
  router?: Router
}

export function start(overrides: Overrides = {}) {
  const records: CallRecord[] = []
  const inference = createInference({
    adapters: overrides.adapters ?? adaptersWithoutModels,
    transport: openTransport(),
    limits: {
      eventBytesMax: 65_536,
      toolArgumentCharsMax: 65_536,
      streamsMax: 100,
      outputCharsMax: 65_536,
      ...overrides.limits,
    },
    deadlines: { firstEventMs: 60_000, gapMs: 60_000, totalMs: 60_000, ...overrides.deadlines },
    retry: { retriesMax: 3, backoffMs: 1, retryAfterMaxMs: 50, ...overrides.retry },
    router: overrides.router ?? createRouter(),
    onSettled: (record) => records.push(record),
  })
  const runUnchecked = (targets: Target[], { signal = new AbortController().signal } = {}) =>
    inference.generate({
      request: makeRequest({ model: 'asked-name' }),
      targets,
      context: makeRequestContext(signal),
    })
  const run = (...given: Parameters<typeof runUnchecked>) => checkEvents(runUnchecked(...given))
  return { inference, records, run, runUnchecked }
}

export async function collect(
  batches: AsyncIterable<readonly GenerationEvent[]>,
): Promise<GenerationEvent[]> {
  return (await Array.fromAsync(batches)).flat()
}

export async function failure(batches: AsyncIterable<unknown>): Promise<AppError> {
  try {
    await Array.fromAsync(batches)
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error('it did not fail')
}

export const texts = (events: GenerationEvent[]) =>
  events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : [])).join('')
