import { describe, expect, test } from 'bun:test'
import { createMarkedText, type TextPart } from '#retrieval/file-search/marked-text.ts'

/** Marks in the text of a model, which may come divided anywhere. */

const known = (number: number) => number >= 1 && number <= 12

/** What comes of the pieces: neighbouring texts as one, with the citations in their places. */
function read(pieces: readonly string[]): string {
  const marked = createMarkedText(known)
  const all = [...pieces.flatMap((piece) => marked.push(piece)), ...marked.end()]
  let shown = ''
  let told = ''
  for (const piece of all) {
    if ('text' in piece) {
      shown += piece.text
      told += piece.text
    } else {
      expect(piece.index, 'it stands at the end of the text so far').toBe(shown.length)
      told += `<${piece.numbers.join()}>`
    }
  }
  return told
}

const rows: [written: string, told: string][] = [
  ['It is so 【1】.', 'It is so<1>.'],
  ['It is so【1】. And so 【2】.', 'It is so<1>. And so<2>.'],
  ['It is so. 【3】', 'It is so.<3>'],
  ['It is 【4】 so.', 'It is<4> so.'],
  ['It is 【4】so.', 'It is<4> so.'],
  ['Both 【1】【2】 of them 【1】 【2】 say so', 'Both<1><2> of them<1><2> say so'],
  ['Both 【1】 【2】so', 'Both<1><2> so'],
  ['Both 【1, 2】, 【3,4】, 【5、6】 and 【7 8】.', 'Both<1,2>,<3,4>,<5,6> and<7,8>.'],
  ['Twice 【1, 1】', 'Twice<1>'],
  ['With a note 【1†L3-L7】 or 【2:0†source】.', 'With a note<1> or<2>.'],
  ['【1】 begins', '<1> begins'],
  ['Known and not 【1, 99】', 'Known and not<1>'],
  ['Nobody gave 【99】 that, nor 【0】.', 'Nobody gave 【99】 that, nor 【0】.'],
  ['見出し【重要】と【1】。', '見出し【重要】と<1>。'],
  ['Never 【ended', 'Never 【ended'],
  ['Cut off 【1', 'Cut off 【1'],
  ['Spaces at the end   ', 'Spaces at the end   '],
  ['a[1] (1) 【】 【 】 【【1】】', 'a[1] (1) 【】 【 】 【<1>】'],
  ['So      【1】', 'So  <1>'],
  [`【1†${'x'.repeat(49)}】`, `【1†${'x'.repeat(49)}】`],
  ['A line\n【1】\nand another', 'A line\n<1>\nand another'],
]

describe('a text with marks', () => {
  test.each(rows)('%j', (written, told) => {
    expect(read([written])).toBe(told)
  })

  test.each(rows)('%j says the same divided at any two places', (written, told) => {
    for (let one = 0; one <= written.length; one++) {
      for (let two = one; two <= written.length; two++) {
        const pieces = [written.slice(0, one), written.slice(one, two), written.slice(two)]
        expect(read(pieces), JSON.stringify(pieces)).toBe(told)
      }
    }
    expect(read([...written])).toBe(told)
  })
})

const textOf = (pieces: readonly TextPart[]) =>
  pieces.map((piece) => ('text' in piece ? piece.text : '')).join('')

test('nothing is held back but what may become a mark', () => {
  const marked = createMarkedText(known)
  expect(textOf(marked.push('word'))).toBe('word')
  expect(textOf(marked.push(' and'))).toBe(' and')
  expect(textOf(marked.push(' 【'))).toBe('')
  expect(textOf(marked.push('1'))).toBe('')
  expect(textOf(marked.push('2x'))).toBe(' 【12x')
  expect(textOf(marked.push('【1†'))).toBe('')
  expect(textOf(marked.push('x'.repeat(60)))).toBe(`【1†${'x'.repeat(60)}`)
})

test('a long text without any mark is read in a time that grows with its length alone', () => {
  const marked = createMarkedText(known)
  const text = `${' '.repeat(1_000_000)}${'【1'.repeat(200_000)}`
  expect(textOf([...marked.push(text), ...marked.end()])).toBe(text)
})

test('places in the written text are found in the shown one', () => {
  const written = 'One 【1】 two 【2】three'
  const marked = createMarkedText(known)
  const shown = textOf([...marked.push(written), ...marked.end()])
  expect(shown).toBe('One two three')
  for (const word of ['One', 'two', 'three']) {
    expect(marked.shownIndex(written.indexOf(word)), word).toBe(shown.indexOf(word))
  }
  expect(marked.shownIndex(written.length)).toBe(shown.length)
})
