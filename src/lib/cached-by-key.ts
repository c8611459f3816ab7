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
