/** The function with its results cached by the identity of their keys, as long as these live. */
export function cachedByKey<Key extends WeakKey, T>(compute: (key: Key) => T): (key: Key) => T {
  const results = new WeakMap<Key, T>()
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
