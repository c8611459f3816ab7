import type { StoredItem } from '#responses/response.ts'
import type { ConnectionMemory } from '#surfaces/responses/history.ts'

/** What one connection remembers of responses that are stored nowhere. */
export type TurnMemory = ConnectionMemory & {
  /** `items` are what stands before the input of a turn that follows this response. */
  remember(responseId: string, items: readonly StoredItem[]): void
  forget(responseId: string): void
  /** Forgets everything, at the end of the connection. */
  clear(): void
}

export type MemoryLimits = {
  /** The most JSON that one connection keeps, and all of them together. */
  readonly memoryCharsMax: number
  readonly memoryTotalCharsMax: number
}

/** Clients go on from their last response; a few more serve those that branch off. */
const responsesMax = 8

type Entry = {
  readonly responseId: string
  readonly items: readonly StoredItem[]
  readonly chars: number
  readonly forget: () => void
}

/** The memories of all connections of this process; where there is no room, the oldest goes. */
export function createMemories(limits: MemoryLimits): { open(): TurnMemory } {
  const everything = new Set<Entry>()
  let totalChars = 0

  function open(): TurnMemory {
    const own = new Map<string, Entry>()
    let ownChars = 0

    const forget = (responseId: string) => {
      const entry = own.get(responseId)
      if (entry === undefined) return
      own.delete(responseId)
      everything.delete(entry)
      ownChars -= entry.chars
      totalChars -= entry.chars
    }

    return {
      find: (responseId) => own.get(responseId)?.items,
      remember(responseId, items) {
        const chars = countChars(items)
        if (chars > limits.memoryCharsMax || chars > limits.memoryTotalCharsMax) return
        const entry = { responseId, items, chars, forget: () => forget(responseId) }
        own.set(responseId, entry)
        everything.add(entry)
        ownChars += chars
        totalChars += chars
        for (const { responseId: oldest } of own.values()) {
          if (own.size <= responsesMax && ownChars <= limits.memoryCharsMax) break
          forget(oldest)
        }
        for (const oldest of everything) {
          if (totalChars <= limits.memoryTotalCharsMax) break
          oldest.forget()
        }
      },
      forget,
      clear() {
        for (const responseId of own.keys()) forget(responseId)
      },
    }
  }

  return { open }
}

/** A turn takes over the items of the one before, so each is measured once. */
const measured = new WeakMap<StoredItem, number>()

function countChars(items: readonly StoredItem[]): number {
  let sum = 0
  for (const item of items) {
    const chars = measured.get(item) ?? JSON.stringify(item).length
    measured.set(item, chars)
    sum += chars
  }
  return sum
}
