import type { Config } from '#config/schema.ts'
import { cachedByKey } from '#lib/cached-by-key.ts'
import type { StoredItem } from '#responses/response.ts'

/** The histories of the unstored responses of one connection. */
export type HistoryMemory = ReturnType<ReturnType<typeof createHistoryMemories>['open']>

/** Per lane. Clients continue their last response; a few more support branches. */
const responsesMax = 8

type Entry = {
  readonly responseId: string
  /** The stream id of its request. */
  readonly lane: string | null
  readonly items: readonly StoredItem[]
  readonly chars: number
  readonly evict: () => void
}

/** Creates the memories of all connections of this process, which evict the oldest entries. */
export function createHistoryMemories(
  limits: Pick<Config['websocket'], 'memoryCharsMax' | 'memoryTotalCharsMax'>,
) {
  const allEntries = new Set<Entry>()
  let totalChars = 0

  function open() {
    const entries = new Map<string, Entry>()
    let connectionChars = 0

    const evict = (responseId: string) => {
      const entry = entries.get(responseId)
      if (entry === undefined) return
      entries.delete(responseId)
      allEntries.delete(entry)
      connectionChars -= entry.chars
      totalChars -= entry.chars
    }

    return {
      find: (responseId: string) => entries.get(responseId)?.items,
      /** `items`: the history of a request that continues this response. */
      remember(responseId: string, items: readonly StoredItem[], lane: string | null) {
        const chars = countChars(items)
        if (chars > limits.memoryCharsMax || chars > limits.memoryTotalCharsMax) return
        const entry = { responseId, lane, items, chars, evict: () => evict(responseId) }
        entries.set(responseId, entry)
        allEntries.add(entry)
        connectionChars += chars
        totalChars += chars
        const ofLane = [...entries.values()].filter((other) => other.lane === lane)
        for (const { responseId: oldest } of ofLane.slice(0, -responsesMax)) evict(oldest)
        for (const { responseId: oldest } of entries.values()) {
          if (connectionChars <= limits.memoryCharsMax) break
          evict(oldest)
        }
        for (const oldest of allEntries) {
          if (totalChars <= limits.memoryTotalCharsMax) break
          oldest.evict()
        }
      },
      /** A failed request of a lane removes its predecessor, unless that belongs to another lane. */
      forget(responseId: string, lane: string | null) {
        if (entries.get(responseId)?.lane === lane) evict(responseId)
      },
      /** Forgets everything when the connection closes. */
      clear() {
        for (const responseId of entries.keys()) evict(responseId)
      },
    }
  }

  return { open }
}

/** Consecutive histories share their items, so each item is measured once. */
const charsOf = cachedByKey((item: StoredItem) => JSON.stringify(item).length)

function countChars(items: readonly StoredItem[]): number {
  let sum = 0
  for (const item of items) sum += charsOf(item)
  return sum
}
