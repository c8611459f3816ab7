import type { Config } from '#config/schema.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { repeat } from '#lib/repeat.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import type { RunPlan } from './runs.ts'
import type { ResponseStore } from './store.ts'
import type { QueuedResponse } from './stored.ts'

/** Background work: accepted by any process, run by any process, each response by one. */
export type Queue = {
  enqueue(response: QueuedResponse): Promise<void>
  serve(prepare: Prepare): void
  /** There may be work. */
  nudge(): void
  /** What was taken and does not run yet is to end instead of that. */
  callOff(id: string): void
  /** What was taken and does not run yet. */
  taken(): readonly string[]
  drain(): void
  close(): Promise<void>
}

type Prepare = (queued: QueuedResponse) => Promise<RunPlan>

type QueueDeps = {
  store: Pick<ResponseStore, 'enqueue' | 'claim'>
  runnerId: string
  settings: Pick<Config['responses'], 'backgroundPerKeyMax' | 'backgroundRunningMax'>
  announce(): void
  /** How many run here that came from the queue. */
  running(): number
  start(queued: QueuedResponse, job: RunPlan): { cancel(): Promise<unknown> }
  fail(queued: QueuedResponse, error: AppError): { cancel(): Promise<unknown> }
  log: Pick<Log, 'warn' | 'error'>
}

/** Nudges are lost now and then, and a database comes back without a word. */
const lookEveryMs = 1_000
/** What one process takes at a time, so that the others get their part. */
const claimedAtOnceMax = 16
const fullRetryAfterS = 5
/** How long what was taken may take to begin when the process stops. */
const closeWaitMaxMs = 2_000

export function createQueue(deps: QueueDeps): Queue {
  const { settings, store } = deps
  const taken = new Map<string, { isCalledOff: boolean }>()
  const beginning = new Set<Promise<void>>()
  let prepare: Prepare | undefined
  let draining = false

  const looking = repeat(look, {
    everyMs: lookEveryMs,
    log: deps.log,
    failed: 'background responses cannot be taken from the queue',
  })

  async function look() {
    while (prepare !== undefined && !draining) {
      const room = settings.backgroundRunningMax - deps.running() - taken.size
      if (room <= 0) return
      const count = Math.min(room, claimedAtOnceMax)
      const claimed = await store.claim(deps.runnerId, count)
      for (const queued of claimed) begin(queued, prepare)
      if (claimed.length < count) return
    }
  }

  function begin(queued: QueuedResponse, how: Prepare) {
    taken.set(queued.id, { isCalledOff: false })
    const begun = prepareAndStart(queued, how)
      .catch((error: unknown) => deps.log.error('a response of the queue was lost', { error }))
      .finally(() => beginning.delete(begun))
    beginning.add(begun)
  }

  async function prepareAndStart(queued: QueuedResponse, how: Prepare) {
    let run: { cancel(): Promise<unknown> }
    try {
      const job = await how(queued)
      run = deps.start(queued, job)
    } catch (error) {
      const failure = toAppError(error)
      if (failure.kind === 'internal_error') {
        deps.log.error('a background response could not begin', { response_id: queued.id, error })
      }
      run = deps.fail(queued, failure)
    }
    const isCalledOff = taken.get(queued.id)?.isCalledOff
    taken.delete(queued.id)
    if (isCalledOff) await run.cancel().catch(() => {})
  }

  return {
    async enqueue(response) {
      if (!(await store.enqueue(response, settings.backgroundPerKeyMax))) {
        throw queueFull(settings.backgroundPerKeyMax)
      }
      looking.soon()
      deps.announce()
    },
    serve(given) {
      prepare = given
      looking.soon()
    },
    nudge: looking.soon,
    callOff(id) {
      const waiting = taken.get(id)
      if (waiting !== undefined) waiting.isCalledOff = true
    },
    taken: () => [...taken.keys()],
    drain() {
      draining = true
    },
    async close() {
      draining = true
      await looking.stop()
      await orAfter(Promise.allSettled(beginning), closeWaitMaxMs, null)
    },
  }
}

function queueFull(unfinishedMax: number): AppError {
  return new AppError(
    'rate_limit_exceeded',
    `This key has ${unfinishedMax} background responses that are not finished, which is the limit.`,
    { retryAfterS: fullRetryAfterS },
  )
}
