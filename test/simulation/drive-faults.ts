import { beginFault, faultMsMax, type PlannedFault } from './faults.ts'
import type { Book, FaultRecord } from './record.ts'
import type { Site } from './site/site.ts'

/** How far the clients are. */
export type Progress = { begun: number; isOver: boolean }

const lookEveryMs = 20

/**
 * Begins and ends the planned faults as the clients go on, each independently of the others: a crash
 * may fall into a restart. Heals all at the end.
 */
export async function driveFaults(given: {
  site: Site
  book: Book
  planned: readonly PlannedFault[]
  progress: Progress
  print: (line: string) => void
}): Promise<void> {
  const { progress } = given
  const waiting = [...given.planned]
  const running: Promise<void>[] = []
  while (!progress.isOver) {
    const [next] = waiting
    if (next !== undefined && progress.begun >= next.atOperation) {
      waiting.shift()
      running.push(runFault(next, given))
    }
    await Bun.sleep(lookEveryMs)
  }
  await Promise.all(running)
}

async function runFault(
  planned: PlannedFault,
  { site, book, progress, print }: Parameters<typeof driveFaults>[0],
): Promise<void> {
  const startedMs = performance.now()
  const begun = await beginFault(site, planned)
  if (begun === null) return
  const { kind } = planned
  const { target } = begun
  print(`operation ${planned.atOperation}: ${kind}, ${target}`)
  const record: FaultRecord = { kind, target, startedMs, endedMs: Number.POSITIVE_INFINITY }
  book.faults.push(record)
  const endsAtOperation = planned.atOperation + planned.lastsOperations
  const isOver = () =>
    progress.isOver ||
    progress.begun >= endsAtOperation ||
    performance.now() - startedMs > faultMsMax
  while (!isOver()) await Bun.sleep(lookEveryMs)
  await begun.end()
  record.endedMs = performance.now()
}
