import { describe, expect, test } from 'bun:test'
import { cutRuns, cutText } from '#inference/token-count/cut-text.ts'

describe('a long text is split', () => {
  test('before spaces, into pieces within the limit', () => {
    const text = 'Some words of which there are many. '.repeat(500)
    const pieces = cutText(text, 1_000)
    expect(pieces.join('')).toBe(text)
    expect(pieces.every(({ length }) => length <= 1_000)).toBeTrue()
    expect(pieces.slice(1).every((piece) => piece.startsWith(' '))).toBeTrue()
  })

  test('anywhere without spaces, but never inside a character', () => {
    const text = '👋'.repeat(500)
    const pieces = cutText(text, 101)
    expect(pieces.join('')).toBe(text)
    expect(pieces.every((piece) => piece.isWellFormed() && piece.length <= 101)).toBeTrue()
  })

  test('not at all if it is short', () => {
    expect(cutText('short', 5)).toEqual(['short'])
    expect(cutText('', 5)).toEqual([''])
  })
})

describe('a text with long runs is split', () => {
  test.each([
    ['letters', 'a'.repeat(1_000)],
    ['another script', '書'.repeat(1_000)],
    ['spaces', ' '.repeat(1_000)],
    ['marks', '=-'.repeat(500)],
  ])('of %s', (_name, run) => {
    const text = `before ${run} after`
    const pieces = cutRuns(text)
    expect(pieces.join('')).toBe(text)
    expect(pieces.length).toBeGreaterThan(5)
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(200)
  })

  test('and is one piece with ordinary words', () => {
    const text = 'A few words, and a_longer_one_of_forty_characters_or_so. '.repeat(50)
    expect(cutRuns(text)).toEqual([text])
  })
})
