import { readdirSync, readFileSync } from 'node:fs'
import { UsageError } from './options.ts'
import { treePids } from './process-tree.ts'

/** Descriptors for the program, its log, database and pool. */
const sparePerProcess = 200

/**
 * Throws a usage error if the open file limit is too low: a gateway needs two descriptors per
 * stream.
 */
export function requireDescriptors(streams: number): void {
  const needed = streams * 2 + sparePerProcess
  const allowed = openFilesMax()
  if (allowed >= needed) return
  throw new UsageError(
    `${streams} streams need ${needed} descriptors in a gateway, and this shell allows ${allowed}: ` +
      `\`ulimit -n ${needed}\` first, or ask for fewer streams`,
  )
}

/** `ulimit -n`, which children inherit. */
function openFilesMax(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    const soft = /^Max open files +(\S+)/m.exec(limits)?.[1]
    return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** Open descriptors of each worker, ordered by process id. */
export function workerDescriptors(supervisorPid: number): number[] {
  const [, ...workers] = treePids(supervisorPid).toSorted((one, other) => one - other)
  return workers.map((pid) => readdirSync(`/proc/${pid}/fd`).length)
}
