import { firstGap, type Span } from './spans.ts'

/** Bytes of a file that one connection fetches. */
export type Claim = {
  readonly start: number
  /** Up to where they have come. */
  at: number
  /** It moves towards the start when another connection takes over the rest. */
  end: number
}

export type Claims = {
  /** What to fetch next; null: all is there or under way. */
  take(fileBytes: number | null): Claim | null
  release(claim: Claim): void
  readonly count: () => number
}

/** Less is not worth a connection of its own. */
const shareBytesMin = 1024 * 1024

/**
 * Shares out what is missing, from the beginning on, so that the file grows from there; at the end
 * the largest piece under way is halved for who has nothing to do.
 */
export function createClaims(written: () => readonly Span[], rangeBytes: number): Claims {
  const claims = new Set<Claim>()
  const claim = (start: number, end: number) => {
    const taken = { start, at: start, end }
    claims.add(taken)
    return taken
  }
  return {
    take(fileBytes) {
      const underWay = [...claims].map(({ start, end }): Span => [start, end])
      const until = fileBytes ?? Number.POSITIVE_INFINITY
      const gap = firstGap([...written(), ...underWay], until)
      if (gap !== null) return claim(gap[0], Math.min(gap[1], gap[0] + rangeBytes))
      const [longest] = [...claims].toSorted((a, b) => b.end - b.at - (a.end - a.at))
      if (longest === undefined || longest.end - longest.at < 2 * shareBytesMin) return null
      const { end } = longest
      longest.end = longest.at + Math.ceil((end - longest.at) / 2)
      return claim(longest.end, end)
    },
    release: (taken) => void claims.delete(taken),
    count: () => claims.size,
  }
}
