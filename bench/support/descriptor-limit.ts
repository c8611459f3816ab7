import { crowdJob } from './concurrent-streams.ts'
import type { Gateway } from './gateway.ts'
import { runLoad } from './load.ts'
import type { LoadReport } from './load-job.ts'
import { treePids } from './process-tree.ts'
import { countWarnings, findLine } from './report.ts'

export type DescriptorLimitResult = {
  /** Stream capacity that the gateway logged at start. */
  readonly capacity: number
  /** Twice the capacity at once, then half of it. */
  readonly beyond: LoadReport
  readonly afterwards: LoadReport
  /** Warnings and errors of the gateway by message. */
  readonly logLines: Readonly<Record<string, number>>
  /** Whether its processes are unchanged. */
  readonly isUnchanged: boolean
}

const limitMessage = 'the limit of open files allows fewer streams than limits.streams_max'
const tokensPerSecond = 2
const windowMs = 5_000
const rampMs = 500
/** Time after which refused connections are closed. */
const restMs = 1_000

/** Requests more streams than a gateway with few descriptors can hold. */
export async function runDescriptorLimit(gateway: Gateway): Promise<DescriptorLimitResult> {
  const room = Number(findLine(gateway.logFile, limitMessage)?.['streams'] ?? 0)
  const before = treePids(gateway.pid)
  const ask = (streams: number) =>
    runLoad({
      ...crowdJob(gateway, { streams, tokensPerSecond, rampMs, windowMs }),
      refusalStatus: 503,
    })
  const beyond = await ask(2 * room)
  await Bun.sleep(restMs)
  const afterwards = await ask(Math.ceil(room / 2))
  const after = treePids(gateway.pid)
  return {
    capacity: room,
    beyond,
    afterwards,
    logLines: countWarnings(gateway.logFile),
    isUnchanged: before.join() === after.join(),
  }
}

/** Whether only requests beyond capacity were refused and nothing else failed. */
export function isCorrect({
  capacity: room,
  beyond,
  afterwards,
  isUnchanged: survived,
}: DescriptorLimitResult): boolean {
  const failed = beyond.faults.failed + afterwards.faults.failed
  const wrong = [beyond, afterwards].some(
    ({ faults }) => faults.lost + faults.duplicated + faults.changed + faults.outOfSequence > 0,
  )
  return survived && failed === 0 && !wrong && beyond.requests === room && afterwards.refused === 0
}
