import { expect, test } from 'bun:test'
import { createSealerOf } from '#sealing/sealer.ts'

/** What links carry so that nobody else can make them. */

const [first, second] = ['a-first-secret-of-32-characters-x', 'another-secret-of-32-characters-y']

test('a signature is the same for the same text, and fit for a URL', () => {
  const signature = createSealerOf([first]).sign('logo', 'abc')
  expect(createSealerOf([first]).sign('logo', 'abc')).toBe(signature)
  expect(signature).toMatch(/^[\w-]{43}$/)
})

test('it holds for its own text alone, and only as it is', () => {
  const sealer = createSealerOf([first])
  const signature = sealer.sign('logo', 'abc')
  expect(sealer.hasSigned('logo', 'abc', signature)).toBe(true)
  for (const text of ['abd', 'ab', 'abcd', '']) {
    expect(sealer.hasSigned('logo', text, signature)).toBe(false)
  }
  for (const forged of ['', signature.slice(1), `${signature}x`, signature.toLowerCase(), 'ä']) {
    expect(sealer.hasSigned('logo', 'abc', forged)).toBe(false)
  }
})

test('a key that has gone second is still recognised, one that is gone is not', () => {
  const signature = createSealerOf([first]).sign('logo', 'abc')
  const rotated = createSealerOf([second, first])
  expect(rotated.hasSigned('logo', 'abc', signature)).toBe(true)
  expect(rotated.sign('logo', 'abc')).not.toBe(signature)
  expect(createSealerOf([second]).hasSigned('logo', 'abc', signature)).toBe(false)
})
