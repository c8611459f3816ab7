import { expect, test } from 'bun:test'
import { measureText } from '#inference/token-estimate.ts'

/** The rules of the estimate, one at a time; how well they fit is tested with whole texts. */

test.each([
  ['a word', 'hidden', 1],
  ['each three further letters of a word', 'hiddenabc', 2],
  ['a word of the first and last letters', 'azAZ', 2],
  ['a word and the space before it', 'so it', 2],
  ['a word with a capital inside', 'camelCase', 2],
  ['a word in capitals', 'CASE', 1],
  ['three digits', '059', 1],
  ['a fourth digit', '0590', 2],
  ['a number behind a space', '1 2', 3],
  ['three marks', '<=>', 1],
  ['each two further marks', '<=>{}', 2],
  ['a mark before a word', '(so', 1.8],
  ['marks at the edges of letters and digits', 'a@[`{/:~', 1 + 1 + 4 / 2],
  ['a mark before a number', '(1', 2],
  ['a line break', 'so\nit', 3],
  ['two line breaks, and a carriage return', 'so\r\n\nit', 3],
  ['a carriage return', 'so\rit', 3],
  ['a line break behind marks', ';\nit', 2],
  ['a line break and the indentation behind it', 'so\n  it', 1 + 0 + (1 + 2 / 32) + 1],
  ['a tabulator', 'so\tit', 2],
  ['many spaces', ' '.repeat(32), 2],
  ['nothing', '', 0],
])('%s', (_, text, tokens) => {
  expect(measureText(text)).toBeCloseTo(tokens, 9)
})

test('data without a space costs more from its 25th character on', () => {
  const words = 'abc123'.repeat(4)
  expect(measureText(words)).toBeCloseTo(8, 9)
  expect(measureText(`${words}a`)).toBeCloseTo(9.3, 9)
  expect(measureText(`${words} ${words}`)).toBeCloseTo(16, 9)
})

test.each([
  [0x80, 1],
  [0xbf, 1],
  [0xc0, 2],
  [0x24f, 2],
  [0x250, 1],
  [0x36f, 1],
  [0x370, 0.55],
  [0x3ff, 0.55],
  [0x400, 0.4],
  [0x58f, 0.4],
  [0x590, 0.55],
  [0x7ff, 0.55],
  [0x800, 0.65],
  [0x11ff, 0.65],
  [0x1200, 1],
  [0x1dff, 1],
  [0x1e00, 2],
  [0x1eff, 2],
  [0x1f00, 1],
  [0x4e00, 1],
])('the character %d costs %d tokens', (code, tokens) => {
  expect(measureText(String.fromCharCode(code))).toBeCloseTo(tokens, 9)
})
