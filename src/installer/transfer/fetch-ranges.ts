import { followSignal } from '#lib/deadline.ts'
import { type Claim, createClaims } from './claims.ts'
import { exchange, type Outcome } from './exchange.ts'
import type { FetchJob } from './job.ts'

/** Why parts are not fetched any further; `filled`: there are none left. */
export type Ending = Exclude<Outcome, { kind: 'failed' }>

/** So many answers in a row that are no parts, after others were, are no mishap any more. */
const oddAnswersMax = 3

/**
 * Fetches what is missing of a file, part by part over several connections. The first one begins
 * alone: its answer shows how long the file is and whether there are parts at all.
 */
export async function fetchRanges(job: FetchJob): Promise<Ending> {
  const { part, settings } = job
  const rangeBytes = settings.rangesMax === 1 ? Number.POSITIVE_INFINITY : settings.rangeBytes
  const claims = createClaims(part.written, rangeBytes)
  const { controller, release } = followSignal(job.signal)
  const connections = new Set<Promise<void>>()
  const run = { ending: null as Ending | null, failure: undefined as unknown, hasParts: false }

  const stop = (ending: Ending | null, failure?: unknown) => {
    run.ending ??= ending
    run.failure ??= failure
    controller.abort(stopped)
  }
  const connect = () => {
    const connection = work().catch((error) => {
      if (error !== stopped) stop(null, error)
    })
    connections.add(connection)
    void connection.finally(() => connections.delete(connection))
  }
  const onAnswered = (isPart: boolean) => {
    if (run.hasParts || !isPart) return
    run.hasParts = true
    for (let made = 1; made < settings.rangesMax; made++) connect()
  }
  async function work() {
    const idle = { triesInVain: 0, oddAnswers: 0 }
    for (;;) {
      const claim = claims.take(part.version().bytes)
      if (claim === null) return
      const outcome = await ask(claim).finally(() => claims.release(claim))
      const next = await weigh(outcome, idle)
      if (next === 'leave') return
    }
  }
  function ask(claim: Claim): Promise<Outcome> {
    const isPart = claim.start > 0 || claim.end !== part.version().bytes
    return exchange(job, {
      claim,
      isPart,
      signal: controller.signal,
      onAnswered: () => onAnswered(isPart),
    })
  }
  async function weigh(outcome: Outcome, idle: { triesInVain: number; oddAnswers: number }) {
    switch (outcome.kind) {
      case 'filled':
        idle.triesInVain = 0
        idle.oddAnswers = 0
        job.patience.filled()
        return 'stay'
      case 'failed':
        // A source that has too much to do is asked over fewer connections.
        if (outcome.error.kind === 'upstream_overloaded' && claims.count() > 0) return 'leave'
        idle.triesInVain = outcome.bytesGained > 0 ? 0 : idle.triesInVain + 1
        await job.patience.failed(outcome, idle.triesInVain, controller.signal)
        return 'stay'
      case 'unrangeable':
        if (run.hasParts && ++idle.oddAnswers < oddAnswersMax) {
          const tried = { error: outcome.error, bytesGained: 0, isSlow: false }
          await job.patience.failed(tried, ++idle.triesInVain, controller.signal)
          return 'stay'
        }
        stop(outcome)
        return 'leave'
      default:
        stop(outcome)
        return 'leave'
    }
  }

  connect()
  while (connections.size > 0) await Promise.all(connections)
  release()
  job.signal.throwIfAborted()
  if (run.failure !== undefined) throw run.failure
  return run.ending ?? { kind: 'filled' }
}

const stopped = new Error('the other connections were stopped')
