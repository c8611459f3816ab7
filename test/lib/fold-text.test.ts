import { expect, test } from 'bun:test'
import { foldText } from '#lib/fold-text.ts'

test.each([
  ['Příliš žluťoučký kůň', 'prilis zlutoucky kun'],
  ['Ärger', 'arger'],
  ['Straße', 'strasse'],
  ['STRASSE', 'strasse'],
  ['Être', 'etre'],
  ['ΆΓΝΩΣΤΟΣ', 'αγνωστος'],
  ['e\u0301', 'e'],
  ['ﬁn', 'fin'],
  ['42 km²', '42 km2'],
])('%p folds to %p', (text, folded) => {
  expect(foldText(text)).toBe(folded)
})

test('folding is idempotent', () => {
  for (const text of ['ΛΌΓΟΣ', 'İstanbul', 'ŽLUŤ', 'ß']) {
    expect(foldText(foldText(text))).toBe(foldText(text))
  }
})
