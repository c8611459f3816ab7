import { describe, expect, test } from 'bun:test'
import { measureText } from '#inference/token-estimate.ts'
import { splitText } from '#retrieval/ingest/split.ts'
import { createDice } from '#test/support/dice.ts'

const small = { tokensMax: 100, overlapTokens: 20 }
const split = (text: string, splitting = small, pages: readonly number[] | null = null) => [
  ...splitText({ text, pages }, splitting),
]
const sentence = (at: number) => `Sentence number ${at} says something of its own kind here.`
const sentences = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => sentence(from + at)).join(' ')

describe('a text', () => {
  test('that is short is one passage', () => {
    expect(split('  Hello\n\nthere. ')).toEqual([
      { ordinal: 0, text: 'Hello\n\nthere.', page: null, start: 2, end: 15 },
    ])
    expect(split('')).toEqual([])
    expect(split(' \n ')).toEqual([])
  })

  test('is split before headings and between paragraphs if possible', () => {
    const parts = [
      `# One\n\n${sentences(0, 4)}`,
      `## Two\n\n${sentences(4, 8)}`,
      `# Three\n\n${sentences(8, 12)}`,
    ]
    const passages = split(parts.join('\n\n'), { tokensMax: 80, overlapTokens: 20 })
    expect(passages.map(({ text }) => text)).toEqual(parts)
    const paragraphs = [sentences(0, 4), sentences(4, 8)]
    expect(split(paragraphs.join('\n\n'), { tokensMax: 80, overlapTokens: 0 })).toMatchObject(
      paragraphs.map((text) => ({ text })),
    )
  })

  test('keeps a heading with the following text', () => {
    const passages = split(`# A heading\n\n${sentences(0, 30)}`)
    expect(passages.length).toBeGreaterThan(3)
    expect(passages[0]?.text).toStartWith(`# A heading\n\n${sentence(0)}`)
  })

  test('of one long paragraph is split between sentences, with overlap', () => {
    const passages = split(sentences(0, 40))
    for (const [at, { text, start }] of passages.entries()) {
      expect(text).toStartWith('Sentence number')
      expect(text).toEndWith('here.')
      const before = passages[at - 1]
      if (before === undefined) continue
      expect(start).toBeLessThan(before.end)
      expect(measureText(text.slice(0, before.end - start))).toBeLessThanOrEqual(20)
    }
  })

  test('without sentences is split between words, without words within them', () => {
    const words = split(Array.from({ length: 400 }, (_, at) => `word${at}`).join(' '))
    for (const { text } of words) expect(text).toMatch(/^word\d+ (.* )?word\d+$/)
    const solid = 'x'.repeat(3_000)
    const pieces = split(solid, { tokensMax: 100, overlapTokens: 0 })
    expect(pieces.map(({ text }) => text).join('')).toBe(solid)
    expect(pieces.length).toBeGreaterThan(3)
  })

  test('records the first page of each passage', () => {
    const pages = [sentences(0, 10), '', sentences(10, 20)]
    const text = `${pages[0]}\n\n${pages[2]}`
    const third = text.indexOf(sentence(10))
    const passages = split(text, { tokensMax: 60, overlapTokens: 0 }, [0, third - 1, third])
    expect(new Set(passages.map(({ page }) => page))).toEqual(new Set([1, 3]))
    for (const { page, start } of passages) expect(page).toBe(start < third ? 1 : 3)
  })
})

test('passages cover any text and respect the maximum', () => {
  const dice = createDice(20_261_121)
  const alphabet = [
    'a',
    'bc ',
    '. ',
    '\n',
    '\n\n',
    '# ',
    '漢字。',
    '😀',
    'é',
    '1234',
    '\t',
    '{}',
    'ß ',
  ]
  for (let round = 0; round < 60; round++) {
    const length = dice.upTo(4_000)
    const text = Array.from({ length }, () => alphabet[dice.upTo(alphabet.length)]).join('')
    const tokensMax = 100 + dice.upTo(200)
    const overlapTokens = dice.upTo(Math.floor(tokensMax / 2))
    const passages = split(text, { tokensMax, overlapTokens })
    let reached = 0
    for (const [at, { ordinal, text: passage, start, end }] of passages.entries()) {
      expect(ordinal).toBe(at)
      expect(passage).toBe(text.slice(start, end))
      expect(passage.isWellFormed()).toBe(true)
      expect(Math.floor(measureText(passage))).toBeLessThanOrEqual(tokensMax)
      // Only whitespace is left out between passages.
      expect(text.slice(reached, Math.max(start, reached)).trim()).toBe('')
      expect(end).toBeGreaterThan(reached)
      reached = end
    }
    expect(text.slice(reached).trim()).toBe('')
  }
})

test('a long text is split lazily', () => {
  const text = `${sentences(0, 200)}\n\n`.repeat(300)
  const passages = splitText({ text, pages: null }, small)
  expect(passages.next().value?.end).toBeLessThan(1_000)
  let last = 0
  for (const { end } of passages) last = end
  expect(last).toBe(text.trimEnd().length)
})
