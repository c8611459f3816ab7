import { closeSync, openSync, readFileSync } from 'node:fs'

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

/**
 * How many streams a worker may have open at once, so that there is always a reserve for the rest;
 * without a bound where the limit is not known. A small limit is shared half and half.
 */
export function streamsWithin(limit: number | null, config: Demand): number {
  if (limit === null) return Number.POSITIVE_INFINITY
  const reserved = Math.min(descriptorsReserved(config), limit / 2)
  return Math.floor((limit - reserved) / descriptorsEach)
}

function descriptorsReserved({ databaseConnectionsMax }: Demand): number {
  return databaseConnectionsMax + othersOpen
}

/** The soft limit of this process; null where it cannot be read, or where there is none. */
export function readDescriptorLimit(): number | null {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    const soft = /^Max open files +(\d+)/m.exec(limits)?.[1]
    return soft === undefined ? null : Number(soft)
  } catch {
    return null
  }
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
