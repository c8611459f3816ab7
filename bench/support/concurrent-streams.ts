import { workerDescriptors } from './descriptors.ts'
import type { Gateway } from './gateway.ts'
import type { Quantiles } from './histogram.ts'
import { runLoad } from './load.ts'
import type { LoadJob, LoadReport } from './load-job.ts'
import { streamedResponses } from './load-request.ts'
import { barePlan } from './plan.ts'
import { startLivezProbe } from './probe.ts'
import type { MemorySample } from './process-tree.ts'
import { treeMemoryBytes, treeWaitMs } from './process-tree.ts'
import { type Faults, noFaults } from './stream-check.ts'

/** Concurrent streams. */
export type CrowdSize = {
  readonly streams: number
  readonly tokensPerSecond: number
  /** Duration of opening all streams. */
  readonly rampMs: number
  /** Duration with all streams open. */
  readonly windowMs: number
}

export type CrowdResult = {
  readonly report: LoadReport
  /** The first sample precedes the first stream. */
  readonly memory: readonly MemorySample[]
  readonly memoryWhenOpenBytes: number
  /** Descriptors of each worker beyond those before the streams. */
  readonly descriptors: readonly number[]
  /** Share of time in which the gateway was runnable but had no core, 0 to 1. */
  readonly waited: { readonly opening: number; readonly open: number }
  readonly livezMs: { readonly opening: Quantiles; readonly open: Quantiles }
  readonly livezFaults: Faults
}

/** Time for the last streams to start, before the window. */
const settleMs = 2_000
/** Slack after the planned end, before open streams count as failed. */
const slackMs = 60_000
const sampleEveryMs = 1_000

/** Opens the streams, samples the gateway while they are open, and reads each to its end. */
export async function runCrowd(gateway: Gateway, size: CrowdSize): Promise<CrowdResult> {
  const job = crowdJob(gateway, size)
  const before = workerDescriptors(gateway.pid)
  const memory: MemorySample[] = [{ atMs: 0, bytes: treeMemoryBytes(gateway.pid) }]
  const livezFaults = noFaults()
  const running = runLoad(job, ({ elapsedMs, streamsOpen, tokens }) => {
    memory.push({ atMs: elapsedMs, bytes: treeMemoryBytes(gateway.pid) })
    if (memory.length % 10 === 0) {
      console.log(`${Math.round(elapsedMs / 1000)} s: ${streamsOpen} streams, ${tokens} tokens`)
    }
  })
  const waitMs = [treeWaitMs(gateway.pid) ?? 0]
  const whileOpening = startLivezProbe(gateway, livezFaults)
  await Bun.sleep(job.windowStartMs)
  const opening = await whileOpening.end()
  waitMs.push(treeWaitMs(gateway.pid) ?? 0)
  const whileOpen = startLivezProbe(gateway, livezFaults)
  await Bun.sleep(size.windowMs / 2)
  const memoryWhenOpenBytes = treeMemoryBytes(gateway.pid)
  const descriptors = workerDescriptors(gateway.pid).map((open, at) => open - (before[at] ?? 0))
  await Bun.sleep(size.windowMs / 2)
  const open = await whileOpen.end()
  waitMs.push(treeWaitMs(gateway.pid) ?? 0)
  const waitedFor = (part: number, ms: number) =>
    ((waitMs[part + 1] ?? 0) - (waitMs[part] ?? 0)) / ms
  return {
    report: await running,
    memory,
    memoryWhenOpenBytes,
    descriptors,
    livezFaults,
    waited: { opening: waitedFor(0, job.windowStartMs), open: waitedFor(1, size.windowMs) },
    livezMs: { opening, open },
  }
}

/** Each stream lasts until the end of the window. */
export function crowdJob(gateway: Gateway, size: CrowdSize): LoadJob {
  const { streams, tokensPerSecond, rampMs, windowMs } = size
  const windowStartMs = rampMs + settleMs
  const lastsMs = windowStartMs + windowMs
  const tokens = Math.ceil((lastsMs / 1000) * tokensPerSecond)
  return {
    ...streamedResponses(gateway),
    connections: streams,
    mode: 'once',
    rampMs,
    windowStartMs,
    windowMs,
    plans: [{ ...barePlan, tokens, tokensPerSecond, lastsMs }],
    deadlineMs: rampMs + lastsMs + slackMs,
    progressMs: sampleEveryMs,
  }
}
