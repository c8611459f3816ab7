import { runLoad } from './load.ts'
import type { LoadJob } from './load-job.ts'
import { isClean } from './report.ts'

export type WarmUpPace = {
  /** One piece of load, after which we look. */
  readonly stepMs: number
  /** All pieces of one kind of load together, at most. */
  readonly limitMs: number
}

export const fullWarmUp: WarmUpPace = { stepMs: 2_500, limitMs: 30_000 }
export const quickWarmUp: WarmUpPace = { stepMs: 1_500, limitMs: 1_500 }

/** Below this share of one core its compilers are quiet: what is left compiles what is rare. */
const quietShare = 0.02

/**
 * Loads a gateway with each kind of job until its compiler threads have little left to do, or for
 * `limitMs` where that never comes (another program, or a pace that stops early). Gives in words how
 * much of a core they used last, where any thread can be looked at.
 */
export async function warmUp(jobs: readonly LoadJob[], pace: WarmUpPace): Promise<string> {
  let last: number | null = null
  for (const job of jobs) {
    for (let spentMs = 0; spentMs < pace.limitMs; spentMs += pace.stepMs) {
      last = await step(job, pace.stepMs)
      if (last !== null && last < quietShare) break
    }
  }
  return last === null
    ? 'warmed up'
    : `warmed up, its compilers at ${(last * 100).toFixed(1)} % of a core`
}

async function step(job: LoadJob, stepMs: number): Promise<number | null> {
  const slackMs = job.deadlineMs - job.windowStartMs - job.windowMs
  const report = await runLoad({
    ...job,
    windowStartMs: 0,
    windowMs: stepMs,
    deadlineMs: stepMs + slackMs,
  })
  const { cpu, ms } = report.window
  // A peer without a Bun has no such threads, and is warm when its time is over.
  if (!isClean(report) || cpu === null || cpu.groupMs.JIT === 0) return null
  return cpu.groupMs.JIT / ms
}
