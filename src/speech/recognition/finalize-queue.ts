/** Who waits for the finals of what was written before they asked. Positions are samples. */
export type FinalizeQueue = {
  add(id: string, position: number): void
  /** The next position that the engine is to be asked at; null: none, or it is being asked. */
  nextPosition(): number | null
  /** The engine is asked for all before this position. */
  ask(position: number): void
  /** The first of those for whom it was asked. */
  askedId(): string | null
  /** Where it was asked; it has answered, or is gone. */
  settle(): number
  /** Those that wait for nothing beyond this position wait no more. */
  takeUpTo(position: number): readonly FinalizeRequest[]
}

/** A client that asks so often while nothing is answered is not answered more often. */
const waitingMax = 1_000

export type FinalizeRequest = { readonly id: string; readonly position: number }

export function createFinalizeQueue(): FinalizeQueue {
  let waiting: readonly FinalizeRequest[] = []
  let askedAt: number | null = null

  return {
    add(id, position) {
      if (waiting.length < waitingMax) waiting = [...waiting, { id, position }]
    },
    nextPosition: () => (askedAt === null ? (waiting[0]?.position ?? null) : null),
    ask(position) {
      askedAt = position
    },
    askedId: () => (askedAt === null ? null : (waiting[0]?.id ?? null)),
    settle() {
      const position = askedAt ?? 0
      askedAt = null
      return position
    },
    takeUpTo(position) {
      const taken = waiting.filter((request) => request.position <= position)
      waiting = waiting.slice(taken.length)
      return taken
    },
  }
}
