import { expect, test } from 'bun:test'
import {
  createPassageRegistry,
  limitPassages,
  type Passage,
  renderPassages,
} from '#retrieval/file-search/passages.ts'

/** The passages of one response, and how a model is told of them. */

const passage = (text: string, given: Partial<Passage> = {}): Passage => ({
  fileId: 'f',
  filename: 'a.txt',
  page: null,
  text,
  ...given,
})

test('numbers go on from search to search, and a passage keeps its own', () => {
  const book = createPassageRegistry([passage('one')])
  const numbers = ['two', 'one', 'three', 'two'].map((text) => book.add(passage(text)))
  expect(numbers).toEqual([2, 1, 3, 2])
  expect(book.add(passage('one', { fileId: 'g' }))).toBe(4)
  expect([book.find(3)?.text, book.find(0), book.find(5)]).toEqual(['three', undefined, undefined])
})

test('a model reads each passage behind its mark, with its file and page', () => {
  const told = renderPassages(
    [passage('Until March.', { filename: 'leave.pdf', page: 4 }), passage('By train.')],
    createPassageRegistry(),
  )
  expect(told).toContain('【1】 leave.pdf, page 4\nUntil March.\n\n【2】 a.txt\nBy train.')
})

test('a model is told when there is nothing', () => {
  expect(renderPassages([], createPassageRegistry())).toStartWith('Nothing was found.')
})

test('more text than a model can read is left out from the end', () => {
  const long = [...'abc'].map((letter) => passage(letter.repeat(100_000)))
  expect(limitPassages(long).map(({ text }) => text[0])).toEqual(['a', 'b'])
})
