import { toAppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { goBack } from './backward.ts'
import { gather, goForward, verify } from './forward.ts'
import { isGoingBack } from './reindex.ts'
import { feedOn, inCourse, type Next, type Place, placeFor, type StepDeps } from './steps.ts'
import { type Run, readRun } from './store.ts'

export type DriveDeps = StepDeps & {
  log: Pick<Log, 'warn'>
  /** How often it is looked whether files have come to an end. */
  lookEveryMs: number
}

/** After so many failures of its own in a row, a reindex waits for somebody. */
const failuresMax = 20
const failurePauseMs = { min: 500, max: 15_000 }

/**
 * Takes a reindex on, step by step, until it has ended or waits for somebody. Each step begins with
 * what the rows say, so any process may take the next one.
 */
export async function drive(deps: DriveDeps, id: string, signal: AbortSignal): Promise<void> {
  const { store, notifier, log } = deps
  let place: Place | undefined
  for (let failures = 0; ; ) {
    signal.throwIfAborted()
    let run: Run | undefined
    try {
      run = await store.ask((handle) => readRun(handle, id))
      if (run === undefined) return
      if (place?.version !== run.version) place = placeFor(run, deps)
      const next = await step(deps, run, { place, signal })
      failures = 0
      if (next === 'rest') return
      if (next === 'later') await notifier.wait(id, deps.lookEveryMs, signal)
    } catch (error) {
      signal.throwIfAborted()
      failures += 1
      log.warn('a step of a reindex failed', { reindex_id: id, error })
      if (failures >= failuresMax && run !== undefined) await stop(deps, run, error).catch(() => {})
      const pauseMs = failurePauseMs.min * 2 ** Math.min(failures, failuresMax)
      await notifier.wait(id, Math.min(pauseMs, failurePauseMs.max), signal)
    }
  }
}

async function step(
  deps: StepDeps,
  run: Run,
  { place, signal }: { place: Place; signal: AbortSignal },
): Promise<Next> {
  switch (run.status) {
    case 'queued':
      return gather(deps, run, place)
    case 'running':
      return goForward(deps, run, place)
    case 'verifying':
      return verify(deps, run, signal)
    case 'cancelling':
    case 'reverting':
      return goBack(deps, run, { place, signal })
    case 'completed':
      return finishRetries(deps, run, place)
    default:
      return 'rest'
  }
}

/** Files that have failed may be tried again after the end. */
async function finishRetries(deps: StepDeps, run: Run, place: Place): Promise<Next> {
  const fed = await feedOn(deps, run, place)
  if (typeof fed === 'object') return 'later'
  return fed === 'done' ? 'rest' : fed
}

/** Going back goes on, whatever is in its way: until its end files are in two places. */
async function stop(deps: StepDeps, run: Run, error: unknown): Promise<void> {
  const { message } = toAppError(error)
  const lastError = `The reindex cannot go on: ${message}`
  if (isGoingBack(run.status) && run.lastError === lastError) return
  await inCourse(deps, run, async (_, { status }) =>
    isGoingBack(status) || status === 'completed' ? { lastError } : { status: 'paused', lastError },
  )
}
