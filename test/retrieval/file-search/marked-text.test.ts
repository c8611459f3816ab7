import { describe, expect, test } from 'bun:test'
import { createMarkedText, type TextPart } from '#retrieval/file-search/marked-text.ts'

/** Markers in streamed text with arbitrary deltas. */

const known = (number: number) => number >= 1 && number <= 12

/** The joined parts of all deltas, with numbers in angle brackets. */
function read(pieces: readonly string[]): string {
  const marked = createMarkedText(known)
  const all = [...pieces.flatMap((piece) => marked.push(piece)), ...marked.end()]
  let shown = ''
  let rendered = ''
  for (const piece of all) {
    if ('text' in piece) {
      shown += piece.text
      rendered += piece.text
    } else {
      expect(piece.index, 'it stands at the end of the text so far').toBe(shown.length)
      rendered += `<${piece.numbers.join()}>`
    }
  }
  return rendered
}

const rows: [written: string, rendered: string][] = [
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

describe('a text with markers', () => {
  test.each(rows)('%j', (written, rendered) => {
    expect(read([written])).toBe(rendered)
  })

  test.each(rows)(
    '%j gives the same result for any division into three deltas',
    (written, rendered) => {
      for (let one = 0; one <= written.length; one++) {
        for (let two = one; two <= written.length; two++) {
          const pieces = [written.slice(0, one), written.slice(one, two), written.slice(two)]
          expect(read(pieces), JSON.stringify(pieces)).toBe(rendered)
        }
      }
      expect(read([...written])).toBe(rendered)
    },
  )
})

const textOf = (pieces: readonly TextPart[]) =>
  pieces.map((piece) => ('text' in piece ? piece.text : '')).join('')

test('only a possible beginning of a marker is withheld', () => {
  const marked = createMarkedText(known)
  expect(textOf(marked.push('word'))).toBe('word')
  expect(textOf(marked.push(' and'))).toBe(' and')
  expect(textOf(marked.push(' 【'))).toBe('')
  expect(textOf(marked.push('1'))).toBe('')
  expect(textOf(marked.push('2x'))).toBe(' 【12x')
  expect(textOf(marked.push('【1†'))).toBe('')
  expect(textOf(marked.push('x'.repeat(60)))).toBe(`【1†${'x'.repeat(60)}`)
})

test('the time for a text without markers is linear in its length', () => {
  const marked = createMarkedText(known)
  const text = `${' '.repeat(1_000_000)}${'【1'.repeat(200_000)}`
  expect(textOf([...marked.push(text), ...marked.end()])).toBe(text)
})

test('positions in the original text convert to the shown text', () => {
  const written = 'One 【1】 two 【2】three'
  const marked = createMarkedText(known)
  const shown = textOf([...marked.push(written), ...marked.end()])
  expect(shown).toBe('One two three')
  for (const word of ['One', 'two', 'three']) {
    expect(marked.shownIndex(written.indexOf(word)), word).toBe(shown.indexOf(word))
  }
  expect(marked.shownIndex(written.length)).toBe(shown.length)
})
