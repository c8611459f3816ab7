import { describe, expect, test } from 'bun:test'
import { AppError } from '#lib/errors.ts'
import { createSealerOf, type Sealer } from '#sealing/sealer.ts'
import { sealsOf } from '#sealing/seals.ts'

const [first, second, third] = ['first', 'second', 'third'].map(
  (name) => `the ${name} secret of a test, long enough`,
) as [string, string, string]

const sealer = createSealerOf([first])
/** The prefix of sealed texts. */
const mark = 'sluice1.'

/** The plain text, null for a foreign text, or the error code. */
function open(by: Sealer, sealed: string, ownerId = 'alice'): string | null {
  try {
    return by.open('reasoning', ownerId, sealed)
  } catch (error) {
    if (error instanceof AppError) return error.wireCode
    throw error
  }
}

describe('a sealed text', () => {
  test.each(['', 'Hm, yes.', 'äöü 三 😀 \u0000 \u2028', '{"a":"\\n"}', 'x'.repeat(100_000)])(
    'decrypts to the plain text: %#',
    (plain) => {
      const sealed = sealer.seal('reasoning', 'alice', plain)
      expect(sealed).toMatch(/^[!-~]+$/)
      expect(open(sealer, sealed)).toBe(plain)
    },
  )

  test('differs each time and reveals nothing of its content', () => {
    const seals = Array.from({ length: 100 }, () => sealer.seal('reasoning', 'alice', 'my thought'))
    expect(new Set(seals).size).toBe(100)
    for (const sealed of seals) {
      const bytes = Buffer.from(sealed.split('.').at(-1) ?? '', 'base64url').toString('latin1')
      expect(bytes).not.toContain('thought')
    }
  })

  test('is rejected after any alteration', () => {
    const sealed = sealer.seal('reasoning', 'alice', 'Hm, yes.')
    for (let at = 0; at < sealed.length; at++) {
      const answer = at < mark.length ? null : 'invalid_encrypted_content'
      for (let bit = 0; bit < 7; bit++) {
        const sign = String.fromCharCode(sealed.charCodeAt(at) ^ (1 << bit))
        const altered = sealed.slice(0, at) + sign + sealed.slice(at + 1)
        expect(open(sealer, altered)).toBe(answer)
      }
    }
  })

  test('is rejected if it was truncated or extended', () => {
    const sealed = sealer.seal('reasoning', 'alice', 'Hm, yes.')
    for (let length = mark.length; length < sealed.length; length++) {
      expect(open(sealer, sealed.slice(0, length))).toBe('invalid_encrypted_content')
    }
    for (const more of ['A', '=', ' ', '\n', '.AAAA']) {
      expect(open(sealer, sealed + more)).toBe('invalid_encrypted_content')
    }
  })

  test('is rejected for another owner or purpose', () => {
    const sealed = sealer.seal('reasoning', 'alice', 'Hm, yes.')
    expect(open(sealer, sealed, 'bob')).toBe('invalid_encrypted_content')
    expect(open(sealer, sealed, '')).toBe('invalid_encrypted_content')
    expect(() => sealer.open('compaction', 'alice', sealed)).toThrow('cannot be decrypted')
    expect(() => sealer.open('request', 'alice', sealed)).toThrow('cannot be decrypted')
  })

  test.each(['', 'gAAAAABpM0Yj', 'sluice2.0.0', ' sluice1.', 'not a seal at all'])(
    'of another service is recognised as foreign: %j',
    (foreign) => {
      expect(open(sealer, foreign)).toBeNull()
    },
  )
})

describe('keys', () => {
  test('encrypt with the first and decrypt with all, for rotation', () => {
    const before = createSealerOf([first])
    const during = createSealerOf([second, first])
    const after = createSealerOf([third, second])
    const [old, current] = [before, during].map((by) => by.seal('reasoning', 'alice', 'x')) as [
      string,
      string,
    ]
    expect(open(during, old)).toBe('x')
    expect(open(after, current)).toBe('x')
    expect(open(before, current)).toBe('invalid_encrypted_content')
    expect(open(after, old)).toBe('invalid_encrypted_content')
  })
})

describe('sealed reasoning', () => {
  test.each([
    { text: 'Hm, yes.', payload: null, maker: null },
    { text: '', payload: 'gAAA', maker: 'native/model' },
    { text: 'Hm.', payload: 'gAAA', maker: 'native/model' },
  ])('opens to the sealed value: %j', (reasoning) => {
    const seal = sealsOf(sealer, 'alice').reasoning
    expect(seal.open(seal.seal(reasoning))).toEqual(reasoning)
    expect(() => sealsOf(sealer, 'bob').reasoning.open(seal.seal(reasoning))).toThrow()
    expect(seal.open('gAAA')).toBeNull()
  })
})
