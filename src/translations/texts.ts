import type { TextsPatch } from './schema.ts'

/** The texts of one language: namespace → key → text. */
export type Texts = ReadonlyMap<string, ReadonlyMap<string, string>>

export function parseTexts(json: string): Texts {
  return textsOf(JSON.parse(json))
}

/** Maps, since objects have inherited names such as `constructor`. */
export function textsOf(
  namespaces: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Texts {
  return new Map(
    Object.entries(namespaces).map(([namespace, keys]) => [
      namespace,
      new Map(Object.entries(keys)),
    ]),
  )
}

/** Sorted by name, so that equal texts have equal JSON. */
export function serializeTexts(texts: Texts): string {
  const sorted = byName(texts).map(([namespace, keys]) => [
    namespace,
    Object.fromEntries(byName(keys)),
  ])
  return JSON.stringify(Object.fromEntries(sorted))
}

/** Applies a merge patch (RFC 7396); empty namespaces are removed. */
export function mergeTexts(current: Texts, patch: TextsPatch): Texts {
  const merged = new Map(current)
  for (const [namespace, changes] of patch) {
    const keys = changes === null ? new Map() : mergeKeys(current.get(namespace), changes)
    if (keys.size === 0) merged.delete(namespace)
    else merged.set(namespace, keys)
  }
  return merged
}

function mergeKeys(
  current: ReadonlyMap<string, string> | undefined,
  changes: ReadonlyMap<string, string | null>,
): ReadonlyMap<string, string> {
  const keys = new Map(current)
  for (const [key, text] of changes) {
    if (text === null) keys.delete(key)
    else keys.set(key, text)
  }
  return keys
}

/** In an entry of the audit log. */
const changesMax = 100

/**
 * The changed texts as `namespace.key`, the first of many, before and after; null: none. A text that
 * does not exist is null.
 */
export function changedTexts(before: Texts, after: Texts) {
  const changed: [name: string, was: string | null, is: string | null][] = []
  for (const namespace of new Set([...before.keys(), ...after.keys()])) {
    const old = before.get(namespace)
    const current = after.get(namespace)
    for (const key of new Set([...(old?.keys() ?? []), ...(current?.keys() ?? [])])) {
      const was = old?.get(key) ?? null
      const is = current?.get(key) ?? null
      if (was !== is) changed.push([`${namespace}.${key}`, was, is])
    }
  }
  if (changed.length === 0) return null
  const shown = changed.slice(0, changesMax)
  const side = (texts: readonly (readonly [string, string | null])[]) => ({
    texts_changed: changed.length,
    texts: Object.fromEntries(texts),
  })
  return {
    before: side(shown.map(([name, was]) => [name, was])),
    after: side(shown.map(([name, , is]) => [name, is])),
  }
}

export function countTexts(texts: Texts): number {
  return [...texts.values()].reduce((sum, keys) => sum + keys.size, 0)
}

function byName<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].toSorted(([one], [other]) => (one < other ? -1 : 1))
}
