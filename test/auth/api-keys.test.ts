import { describe, expect, test } from 'bun:test'
import { createApiKey, hashApiKey, isApiKey, maskApiKey } from '#auth/key-format.ts'

describe('an API key', () => {
  test('has the documented form and is unique', () => {
    const keys = Array.from({ length: 1_000 }, createApiKey)
    for (const key of keys) {
      expect(key).toMatch(/^sk-svc-v1-[0-9A-Za-z]{49}$/)
      expect(isApiKey(key)).toBe(true)
    }
    expect(new Set(keys).size).toBe(1_000)
  })

  test('uses every character of its alphabet at every position of the secret', () => {
    const keys = Array.from({ length: 4_000 }, createApiKey)
    for (let place = 10; place < 53; place++) {
      // That one of 62 signs is missing in 4,000 draws happens once in 10²⁶ runs.
      expect(new Set(keys.map((key) => key.charAt(place))).size).toBe(62)
    }
  })

  test('is invalid when one character differs', () => {
    const key = createApiKey()
    for (let place = 0; place < key.length; place++) {
      const other = key.charAt(place) === 'x' ? 'y' : 'x'
      expect(isApiKey(key.slice(0, place) + other + key.slice(place + 1))).toBe(false)
    }
  })

  test('is invalid when two adjacent characters are swapped', () => {
    const key = createApiKey()
    for (let place = 10; place < key.length - 1; place++) {
      const [left, right] = [key.charAt(place), key.charAt(place + 1)]
      const swapped = key.slice(0, place) + right + left + key.slice(place + 2)
      expect(isApiKey(swapped)).toBe(left === right)
    }
  })

  test.each([
    '',
    'sk-svc-v1-',
    'sk-svc-v2-',
    `${createApiKey()}\n`,
    ` ${createApiKey()}`,
    `${createApiKey()}0`,
    createApiKey().slice(0, -1),
    createApiKey().toUpperCase(),
  ])('does not accept %p', (text) => {
    expect(isApiKey(text)).toBe(false)
  })

  test('is masked to its last four characters', () => {
    const key = createApiKey()
    expect(maskApiKey(key)).toBe(`sk-svc-v1-********${key.slice(-4)}`)
  })

  test('has a different hash for each pepper', () => {
    const key = createApiKey()
    const plain = new Bun.CryptoHasher('sha256').update(key).digest('hex')
    expect(hashApiKey(key, undefined).toString('hex')).toBe(plain)
    const hashes = [undefined, 'pepper-pepper-one', 'pepper-pepper-two'].map((pepper) =>
      hashApiKey(key, pepper).toString('hex'),
    )
    expect(new Set(hashes).size).toBe(3)
    expect(hashes.every((hash) => hash.length === 64)).toBe(true)
  })
})
