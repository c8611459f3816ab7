import { followSignal, sleep } from '#lib/deadline.ts'
import { EngineError } from '#speech/engine.ts'
import { EngineRun, openEngineRun, type RunRequest } from './engine-run.ts'

export type Supply = RunRequest & {
  /** For how long it is tried. */
  readonly limitMs: number
  /** It was tried in vain, and will be tried again. */
  readonly waiting: (error: EngineError) => void
}

const pauseMsMin = 100
const pauseMsMax = 4_000

/** A fresh session of an engine, tried again until the limit; then rejects with the last error. */
export async function supplyEngineRun(supply: Supply): Promise<EngineRun> {
  const { controller, release } = followSignal(supply.signal)
  const timer = setTimeout(() => controller.abort(), supply.limitMs)
  try {
    return await tryUntilAborted({ ...supply, signal: controller.signal })
  } finally {
    clearTimeout(timer)
    release()
  }
}

async function tryUntilAborted(supply: Supply): Promise<EngineRun> {
  for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
    const outcome = await attempt(supply)
    if (outcome instanceof EngineRun) return outcome
    // The engine's own word says more than that the time is over.
    if (supply.signal.aborted || outcome.kind === 'refused') throw outcome
    supply.waiting(outcome)
    await sleep(pauseMs, supply.signal).catch(() => {})
    if (supply.signal.aborted) throw outcome
  }
}

async function attempt(supply: Supply): Promise<EngineRun | EngineError> {
  try {
    const run = await openEngineRun(supply)
    if (!supply.signal.aborted) return run
    run.abort()
    return new EngineError('unreachable', 'nobody waits for it any more')
  } catch (error) {
    if (error instanceof EngineError) return error
    return new EngineError('broken', 'the engine could not be opened', { cause: error })
  }
}
