import { createLru } from './lru.ts'

type Results<Key, T> = { get(key: Key): T | undefined; set(key: Key, result: T): unknown }

/** The function with its results cached by the identity of their keys, as long as these live. */
export function cachedByKey<Key extends WeakKey, T>(compute: (key: Key) => T): (key: Key) => T {
  return cachedIn(new WeakMap<Key, T>(), compute)
}

/** The function with its most recently used results cached. */
export function cachedLatest<Key, T>(
  resultsMax: number,
  compute: (key: Key) => T,
): (key: Key) => T {
  return cachedIn(createLru<Key, T>(resultsMax), compute)
}

function cachedIn<Key, T>(results: Results<Key, T>, compute: (key: Key) => T): (key: Key) => T {
  return (key) => {
    const known = results.get(key)
    if (known !== undefined) return known
    const result = compute(key)
    results.set(key, result)
    return result
  }
}

/** The function with its first results cached, by their text. */
export function cachedByText<T>(
  resultsMax: number,
  compute: (text: string) => T,
): (text: string) => T {
  const results = new Map<string, T>()
  return (text) => {
    const known = results.get(text)
    if (known !== undefined) return known
    const result = compute(text)
    if (results.size < resultsMax) results.set(text, result)
    return result
  }
}
