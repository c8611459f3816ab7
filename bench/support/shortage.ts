import { crowdJob } from './crowd.ts'
import type { Gateway } from './gateway.ts'
import { runLoad } from './load.ts'
import type { LoadReport } from './load-job.ts'
import { countWarnings, findLine } from './log-lines.ts'
import { treePids } from './process-tree.ts'

export type ShortageResult = {
  /** What the gateway said at its start that its descriptors are enough for. */
  readonly room: number
  /** Twice as many at once as there is room for; and half as many, once those are over. */
  readonly beyond: LoadReport
  readonly afterwards: LoadReport
  /** Warnings and errors of the gateway, by their message. */
  readonly logLines: Readonly<Record<string, number>>
  /** Whether its processes are the same as before. */
  readonly survived: boolean
}

const limitMessage = 'the limit of open files allows fewer streams than limits.streams_max'
const tokensPerSecond = 2
const windowMs = 5_000
const rampMs = 500
/** Connections that were refused are closed by then. */
const restMs = 1_000

/** Asks a gateway with few descriptors for more streams than they are enough for. */
export async function runShortage(gateway: Gateway): Promise<ShortageResult> {
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
    room,
    beyond,
    afterwards,
    logLines: countWarnings(gateway.logFile),
    survived: before.join() === after.join(),
  }
}

/** Whether nothing failed but what was refused, and nothing was refused while there was room. */
export function isOrderly({ room, beyond, afterwards, survived }: ShortageResult): boolean {
  const failed = beyond.faults.failed + afterwards.faults.failed
  const wrong = [beyond, afterwards].some(
    ({ faults }) => faults.lost + faults.duplicated + faults.changed + faults.outOfSequence > 0,
  )
  return survived && failed === 0 && !wrong && beyond.requests === room && afterwards.refused === 0
}
