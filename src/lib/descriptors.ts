import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'

/** Descriptors of a worker for files, listeners and its log. */
const otherDescriptors = 128

/** A stream or a speech session has a socket to the client and one to the upstream or engine. */
const descriptorsPerStream = 2

type CapacityConfig = {
  readonly limits: { readonly streamsMax: number }
  readonly speech: { readonly sessionsMax: number }
  readonly databaseConnectionsMax: number
}

/** The descriptors that a worker needs at its configured capacity. */
export function descriptorsNeeded(config: CapacityConfig): number {
  const served = config.limits.streamsMax + config.speech.sessionsMax
  return descriptorsPerStream * served + descriptorsReserved(config)
}

/** The descriptors of this process. */
export type DescriptorState = {
  /** The soft limit. */
  readonly limit: number
  readonly open: number
}

/** null if the limit cannot be read, as on systems without /proc. */
export function readDescriptors(): DescriptorState | null {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    const soft = /^Max open files +(\d+)/m.exec(limits)?.[1]
    return soft === undefined
      ? null
      : { limit: Number(soft), open: readdirSync('/proc/self/fd').length }
  } catch {
    return null
  }
}

/**
 * The streams that fit into the descriptors left at start, with a reserve for everything else. With
 * few descriptors left, half of them are for streams.
 */
export function streamsWithin({ limit, open }: DescriptorState, config: CapacityConfig): number {
  const free = Math.max(limit - open, 0)
  const reserved = Math.min(descriptorsReserved(config), free / 2)
  return Math.floor((free - reserved) / descriptorsPerStream)
}

function descriptorsReserved({ databaseConnectionsMax }: CapacityConfig): number {
  return databaseConnectionsMax + otherDescriptors
}

/** Whether this many more descriptors can be opened now. */
export function canOpen(count: number): boolean {
  const opened: number[] = []
  try {
    while (opened.length < count) opened.push(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}
