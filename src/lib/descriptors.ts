import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'

/** What a worker has open beside streams, speech and its database: files, listeners, its log. */
const othersOpen = 128

/** A stream and a speech session each have a socket to the client and one to who serves it. */
const descriptorsEach = 2

type Demand = {
  readonly limits: { readonly streamsMax: number }
  readonly speech: { readonly sessionsMax: number }
  readonly databaseConnectionsMax: number
}

/** The descriptors of a worker that has as much to do as its configuration allows. */
export function descriptorsNeeded(config: Demand): number {
  const served = config.limits.streamsMax + config.speech.sessionsMax
  return descriptorsEach * served + descriptorsReserved(config)
}

/** The descriptors of this process. */
export type DescriptorState = {
  /** The soft limit. */
  readonly limit: number
  readonly open: number
}

/** null where there is no limit, or where it cannot be read. */
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
 * How many streams a worker may have at once, beside what it has open at its start, so that there is
 * always a reserve for the rest. Where there is little, half of it is for streams.
 */
export function streamsWithin({ limit, open }: DescriptorState, config: Demand): number {
  const free = Math.max(limit - open, 0)
  const reserved = Math.min(descriptorsReserved(config), free / 2)
  return Math.floor((free - reserved) / descriptorsEach)
}

function descriptorsReserved({ databaseConnectionsMax }: Demand): number {
  return databaseConnectionsMax + othersOpen
}

/** Whether so many more could be opened at this moment. */
export function canOpen(howMany: number): boolean {
  const opened: number[] = []
  try {
    while (opened.length < howMany) opened.push(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}
