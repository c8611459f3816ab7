import type { TextsPatch } from './schema.ts'

/** Namespace → key → text, of one language. */
export type Texts = ReadonlyMap<string, ReadonlyMap<string, string>>

/** Of texts as they are stored. */
export function parseTexts(json: string): Texts {
  const texts: Record<string, Record<string, string>> = JSON.parse(json)
  return new Map(
    Object.entries(texts).map(([namespace, keys]) => [namespace, new Map(Object.entries(keys))]),
  )
}

/** The same JSON for the same texts, whatever the order in which they came. */
export function spellTexts(texts: Texts): string {
  const sorted = byName(texts).map(([namespace, keys]) => [
    namespace,
    Object.fromEntries(byName(keys)),
  ])
  return JSON.stringify(Object.fromEntries(sorted))
}

/** RFC 7396; a namespace without texts is none. */
export function mergeTexts(known: Texts, patch: TextsPatch): Texts {
  const merged = new Map(known)
  for (const [namespace, changes] of patch) {
    const keys = changes === null ? new Map() : mergeKeys(known.get(namespace), changes)
    if (keys.size === 0) merged.delete(namespace)
    else merged.set(namespace, keys)
  }
  return merged
}

function mergeKeys(
  known: ReadonlyMap<string, string> | undefined,
  changes: ReadonlyMap<string, string | null>,
): ReadonlyMap<string, string> {
  const keys = new Map(known)
  for (const [key, text] of changes) {
    if (text === null) keys.delete(key)
    else keys.set(key, text)
  }
  return keys
}

export function countTexts(texts: Texts): number {
  return [...texts.values()].reduce((sum, keys) => sum + keys.size, 0)
}

function byName<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].toSorted(([one], [other]) => (one < other ? -1 : 1))
}
