import type { LoadJob } from './load-job.ts'
import { storedTarget } from './pairs.ts'
import { barePlan } from './plan.ts'
import { jobFor, type Target } from './targets.ts'

export const tokensPerSecond = 50
/** Extra time for a machine that opens streams late. */
export const slackMs = 60_000
const progressMs = 250

type PacedWindow = {
  /** Pause after the last stream was opened, before the window. */
  readonly settleMs: number
  readonly windowMs: number
}

/**
 * All streams are open during the whole window; clients disconnect when it ends. Each stream
 * pauses after its first token until all are open: otherwise a saturated machine could not open
 * thousands.
 */
export function pacedJob(
  streams: number,
  target: Target,
  how: { readonly pace: PacedWindow; readonly isSpread: boolean },
): LoadJob {
  const { settleMs, windowMs } = how.pace
  const beatMs = 1000 / tokensPerSecond
  const rampMs = Math.max(300, streams)
  const restsUntilMs = rampMs + Math.max(300, streams / 2)
  const deadlineMs = restsUntilMs + settleMs + windowMs + slackMs
  const plans = Array.from({ length: streams }, (_, number) => {
    // Whole intervals, so that streams stay in step or keep their offsets.
    const beats = Math.round((restsUntilMs - (number * rampMs) / streams) / beatMs)
    const tokens = Math.ceil(deadlineMs / beatMs)
    const stepMs = how.isSpread ? 0 : beatMs
    return { ...barePlan, tokens, tokensPerSecond, stepMs, restMs: beats * beatMs }
  })
  return {
    ...streamJob(target, streams),
    mode: 'leave',
    rampMs,
    windowMs,
    plans,
    deadlineMs,
    // The last stream pauses for as long as opening one more would take.
    windowStartMs: restsUntilMs - rampMs + settleMs,
  }
}

/** The part that all jobs of streams share. */
export function streamJob(target: Target, connections: number) {
  const store = target.name === storedTarget
  return { ...jobFor(target), stream: true, store, connections, progressMs }
}
