/** What was taken out of a drawing, each kind of thing once, for a person to read. */
export type Removals = {
  add(what: string): void
  list(): readonly string[]
}

const kindsMax = 100
const charsMax = 80

export function createRemovals(): Removals {
  const kinds = new Set<string>()
  let isCut = false
  return {
    add(what) {
      const kind = what.slice(0, charsMax)
      if (kinds.size < kindsMax) kinds.add(kind)
      else isCut ||= !kinds.has(kind)
    },
    list: () => [...kinds, ...(isCut ? ['and more'] : [])],
  }
}
