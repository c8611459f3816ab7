import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { Inference } from '#inference/inference.ts'
import type { Adapter, AdapterContext } from '#inference/upstream.ts'
import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import { adaptersWithoutModels } from '#test/support/adapters.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import { collect, failure, type Overrides, start, target } from '#test/support/generations.ts'
import { runPendingPromises } from '#test/support/pending-promises.ts'

/**
 * A test advances the clock; the adapter works in memory. So no deadline depends on the speed of
 * the machine.
 */
beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const batches: readonly EventBatch[] = [
  [
    { type: 'generation-start' },
    { type: 'text-start', block: 0, form: 'answer' },
    { type: 'text-delta', block: 0, text: 'one ' },
  ],
  [{ type: 'text-delta', block: 0, text: 'two ' }],
  [{ type: 'text-delta', block: 0, text: 'three' }],
  [
    { type: 'text-end', block: 0, complete: true },
    { type: 'finish', reason: 'stop', rawReason: 'stop', usage: null },
  ],
]

/** An upstream that has each batch ready, and pauses before the batches named in `silentBefore`. */
function startInMemory(given: {
  deadlines?: Overrides['deadlines']
  silentBefore?: number
  failures?: number
}) {
  const signals: CancelSignal[] = []
  let failuresLeft = given.failures ?? 0
  async function* generate(_request: unknown, { signal }: AdapterContext) {
    signals.push(signal)
    if (failuresLeft-- > 0) throw new AppError('upstream_error', 'The upstream failed.')
    for (const [index, batch] of batches.entries()) {
      if (index === given.silentBefore) await untilAborted(signal)
      yield batch
    }
  }
  const adapters = {
    ...adaptersWithoutModels,
    chat: { ...adaptersWithoutModels.chat, generate },
  }
  return {
    ...start({ deadlines: given.deadlines ?? {}, adapters }),
    signals,
    targets: [target('http://in.memory/v1')],
  }
}

function untilAborted(signal: CancelSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

const finish: Partial<GenerationEvent> = { type: 'finish' }
/** The total deadlines of all generations have one, which outlives them until it fires. */
const sharedTimers = 1
const timersAfter = (deadline: string) => (deadline === 'total' ? 0 : sharedTimers)

test('the first-event deadline ends with the first output', async () => {
  const { run, signals, targets } = startInMemory({ deadlines: { firstEventMs: 1_000 } })
  const stream = run(targets)
  await stream.next()
  jest.advanceTimersByTime(5_000)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  expect((await collect(stream)).at(-1)).toMatchObject(finish)
})

test('the gap deadline ends with each batch, however long the reader holds it', async () => {
  const { run, signals, targets } = startInMemory({ deadlines: { gapMs: 1_000 } })
  const events: GenerationEvent[] = []
  for await (const batch of run(targets)) {
    events.push(...batch)
    jest.advanceTimersByTime(5_000)
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  }
  expect(events.at(-1)).toMatchObject(finish)
})

test.each([
  ['first_event', 0, { firstEventMs: 1_000 }],
  ['total', 0, { totalMs: 1_000 }],
])('the %s deadline expires without output', async (name, silentBefore, deadlines) => {
  const { run, signals, targets } = startInMemory({ deadlines, silentBefore })
  const failed = failure(run(targets))
  await runPendingPromises()
  jest.advanceTimersByTime(999)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  jest.advanceTimersByTime(1)
  expect((await failed).wireCode).toBe(`upstream_${name}_timeout`)
  expect(jest.getTimerCount()).toBe(timersAfter(name))
})

test.each([
  ['gap', 2, { gapMs: 1_000 }],
  ['total', 2, { totalMs: 1_000 }],
])('the %s deadline passes in a silence after output', async (name, silentBefore, deadlines) => {
  const { run, signals, targets } = startInMemory({ deadlines, silentBefore })
  const collected = collect(run(targets))
  await runPendingPromises()
  jest.advanceTimersByTime(999)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  jest.advanceTimersByTime(1)
  expect((await collected).at(-1)).toMatchObject({
    type: 'error',
    error: { wireCode: `upstream_${name}_timeout` },
  })
  expect(jest.getTimerCount()).toBe(timersAfter(name))
})

test('completed generations leave no timers', async () => {
  const { run, targets } = startInMemory({})
  for (let count = 0; count < 3; count++) await collect(run(targets))
  expect(jest.getTimerCount()).toBe(sharedTimers)
})

test('generations that the client abandons leave no timers', async () => {
  const { run, targets } = startInMemory({})
  for (let count = 0; count < 3; count++) for await (const _batch of run(targets)) break
  expect(jest.getTimerCount()).toBe(sharedTimers)
})

test('a failed attempt leaves no timer', async () => {
  const { run, targets } = startInMemory({ failures: 1 })
  const stream = run(targets)
  const first = stream.next()
  await runPendingPromises()
  jest.advanceTimersByTime(1)
  await first
  // The gap watchdog starts with the next read.
  expect(jest.getTimerCount()).toBe(sharedTimers)
  await collect(stream)
  expect(jest.getTimerCount()).toBe(sharedTimers)
})

const silent = (_input: unknown, { signal }: AdapterContext) => untilAborted(signal)
const adaptersThat = (chat: Partial<Adapter>) => ({
  ...adaptersWithoutModels,
  chat: { ...adaptersWithoutModels.chat, ...chat },
})
const speech = { text: 'Hello', voice: 'alloy', format: 'mp3' } as const
const call = () => ({
  targets: [target('http://in.memory/v1')],
  context: makeRequestContext(new AbortController().signal),
})

/** The call ends at this moment, and leaves no timer. */
async function expectFailureAfter(ms: number, call: Promise<unknown>, wireCode: string) {
  let outcome: unknown
  void call.then(
    (value) => {
      outcome = value
    },
    (error: unknown) => {
      outcome = error
    },
  )
  await runPendingPromises()
  jest.advanceTimersByTime(ms - 1)
  await runPendingPromises()
  expect(outcome).toBeUndefined()
  jest.advanceTimersByTime(1)
  await runPendingPromises()
  expect(outcome).toMatchObject({ wireCode })
  expect(jest.getTimerCount()).toBe(0)
}

test.each<[string, (inference: Inference) => Promise<unknown>]>([
  ['embeddings', (inference) => inference.embed(call(), 'm', { texts: ['a'] })],
  [
    'reranking',
    (inference) => inference.rerank(call(), 'm', { query: 'a', documents: ['b'], topN: null }),
  ],
  ['speech', (inference) => inference.speak(call(), 'm', speech)],
])('the first-event deadline ends %s without an answer', async (_name, ask) => {
  const adapters = adaptersThat({ embed: silent, rerank: silent, speak: silent })
  const { inference } = start({ adapters, deadlines: { firstEventMs: 1_000 } })
  await expectFailureAfter(1_000, ask(inference), 'upstream_first_event_timeout')
})

test.each([
  ['gap', { gapMs: 1_000 }],
  ['total', { totalMs: 1_000 }],
])('the %s deadline passes in the middle of speech', async (name, deadlines) => {
  const speak = async (_input: unknown, { signal }: AdapterContext) => ({
    contentType: 'audio/mpeg',
    first: Uint8Array.of(1),
    next: () => untilAborted(signal),
    cancel() {},
  })
  const { inference } = start({ adapters: adaptersThat({ speak }), deadlines })
  const { bytes } = await inference.speak(call(), 'm', speech)
  await bytes.next()
  await expectFailureAfter(1_000, bytes.next(), `upstream_${name}_timeout`)
})
