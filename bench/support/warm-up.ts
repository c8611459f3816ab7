import { runLoad } from './load.ts'
import type { LoadJob } from './load-job.ts'
import { isClean } from './report.ts'

export type WarmUpPace = {
  /** Duration of one piece of load. */
  readonly stepMs: number
  /** Maximum duration per kind of load. */
  readonly limitMs: number
}

export const fullWarmUp: WarmUpPace = { stepMs: 2_500, limitMs: 30_000 }
export const quickWarmUp: WarmUpPace = { stepMs: 1_500, limitMs: 1_500 }

/** Compiler CPU share below which a gateway counts as warm. */
const quietShare = 0.02

/**
 * Loads a gateway with each kind of job until its compiler threads are quiet, for at most
 * `limitMs`. Returns a description of their last CPU use.
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
    : `warmed up, compilers at ${(last * 100).toFixed(1)} % of a core`
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
  // A peer without compiler threads is warm after its time limit.
  if (!isClean(report) || cpu === null || cpu.groupMs.JIT === 0) return null
  return cpu.groupMs.JIT / ms
}
