import { readFileSync } from 'node:fs'
import { UsageError } from './options.ts'

/** Beside the streams: the program, its log, its database, its pool. */
const sparePerProcess = 200

/**
 * Throws a usage error where the processes that this one starts could not hold so many streams: a
 * gateway needs two descriptors for each, its client's and its upstream's.
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

/** What `ulimit -n` says; children inherit it. */
function openFilesMax(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    const soft = /^Max open files +(\S+)/m.exec(limits)?.[1]
    return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
