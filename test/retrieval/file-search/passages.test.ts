import { expect, test } from 'bun:test'
import {
  createPassageRegistry,
  limitPassages,
  type Passage,
  renderPassages,
} from '#retrieval/file-search/passages.ts'

/** The passages of one response, and their text for the model. */

const passage = (text: string, given: Partial<Passage> = {}): Passage => ({
  fileId: 'f',
  filename: 'a.txt',
  page: null,
  text,
  ...given,
})

test('numbers continue across searches, and a passage keeps its number', () => {
  const book = createPassageRegistry([passage('one')])
  const numbers = ['two', 'one', 'three', 'two'].map((text) => book.add(passage(text)))
  expect(numbers).toEqual([2, 1, 3, 2])
  expect(book.add(passage('one', { fileId: 'g' }))).toBe(4)
  expect([book.find(3)?.text, book.find(0), book.find(5)]).toEqual(['three', undefined, undefined])
})

test('each passage follows its marker, with its file and page', () => {
  const registry = createPassageRegistry()
  const rendered = renderPassages(
    [passage('Until March.', { filename: 'leave.pdf', page: 4 }), passage('By train.')],
    registry,
  )
  const tag = `passage-${registry.boundary}`
  expect(rendered).toContain(
    `<${tag} marker="【1】" file="leave.pdf" page="4">\nUntil March.\n</${tag}>\n\n<${tag} marker="【2】" file="a.txt">\nBy train.\n</${tag}>`,
  )
})

test('an empty result says so', () => {
  expect(renderPassages([], createPassageRegistry())).toStartWith('Nothing was found.')
})

test('passages beyond the prompt limit are dropped', () => {
  const long = [...'abc'].map((letter) => passage(letter.repeat(100_000)))
  expect(limitPassages(long).map(({ text }) => text[0])).toEqual(['a', 'b'])
})
