import { expect, test } from 'bun:test'
import { createSealerOf } from '#sealing/sealer.ts'

/** Signatures of links. */

const [first, second] = ['a-first-secret-of-32-characters-x', 'another-secret-of-32-characters-y']

test('a signature is deterministic and URL-safe', () => {
  const signature = createSealerOf([first]).sign('logo', 'abc')
  expect(createSealerOf([first]).sign('logo', 'abc')).toBe(signature)
  expect(signature).toMatch(/^[\w-]{43}$/)
})

test('a signature is valid for its exact text only', () => {
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

test('signatures of a rotated key are valid, those of a removed key are not', () => {
  const signature = createSealerOf([first]).sign('logo', 'abc')
  const rotated = createSealerOf([second, first])
  expect(rotated.hasSigned('logo', 'abc', signature)).toBe(true)
  expect(rotated.sign('logo', 'abc')).not.toBe(signature)
  expect(createSealerOf([second]).hasSigned('logo', 'abc', signature)).toBe(false)
})
