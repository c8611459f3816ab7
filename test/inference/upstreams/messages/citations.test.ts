import { expect, test } from 'bun:test'
import type { GenerationEvent } from '#inference/events.ts'
import { citationsMax } from '#inference/upstream-fields.ts'
import {
  blockDelta,
  blockStart,
  blockStop,
  decode,
  emptyText,
  messageDelta,
  messageStart,
  messageStop,
  text,
} from './decoding.ts'

const citing = (citation: object, index = 0) =>
  blockDelta({ type: 'citations_delta', citation }, index)

function citationsOf(pieces: readonly unknown[]) {
  const { events, error } = decode([messageStart, ...pieces, messageDelta(), messageStop])
  expect(error).toBeNull()
  return events.flatMap((event: GenerationEvent) =>
    event.type === 'citation' ? [{ block: event.block, ...event.citation }] : [],
  )
}

/** Of a text of two characters. */
const citationsIn = (...citations: object[]) =>
  citationsOf([
    blockStart(emptyText),
    text('Hi'),
    ...citations.map((citation) => citing(citation)),
    blockStop(),
  ])

const range = { block: 0, startIndex: 0, endIndex: 2 }
const url = 'https://a.example'

test.each([
  ['an address', { url, title: 'A' }, [{ kind: 'url', url, title: 'A', ...range }]],
  ['an address without a title', { url }, [{ kind: 'url', url, title: url, ...range }]],
  ['an address as its source', { source: url }, [{ kind: 'url', url, title: url, ...range }]],
  ['a source that is no address', { source: 'notes', title: 'A' }, []],
  [
    'a file',
    { file_id: 'file_1', document_title: 'a.pdf', document_index: 0 },
    [{ block: 0, kind: 'file', fileId: 'file_1', filename: 'a.pdf', index: 2 }],
  ],
  [
    'a file without a title',
    { file_id: 'file_1' },
    [{ block: 0, kind: 'file', fileId: 'file_1', filename: '', index: 2 }],
  ],
  ['a place in a document of the request', { document_title: 'a.pdf', document_index: 0 }, []],
])('%s is cited at its text', (_, citation, expected) => {
  expect(citationsIn(citation)).toEqual(expected as never)
})

test('each citation covers the piece of the text that it came with', () => {
  const pieces = [
    [blockStart(emptyText), text('One '), citing({ url: 'https://a.example' }), blockStop()],
    [blockStart(emptyText, 1), text('two', 1), blockStop(1)],
    [
      blockStart(emptyText, 2),
      text(' three', 2),
      citing({ url: 'https://b.example' }, 2),
      blockStop(2),
    ],
  ].flat()
  expect(citationsOf(pieces)).toMatchObject([
    { block: 0, startIndex: 0, endIndex: 4 },
    { block: 0, startIndex: 7, endIndex: 13 },
  ])
})

test('a piece without text cites nothing', () => {
  expect(citationsOf([blockStart(emptyText), citing({ url }), blockStop()])).toEqual([])
})

test('citations are limited', () => {
  const many = Array.from({ length: citationsMax + 1 }, () => ({ url }))
  expect(citationsIn(...many)).toHaveLength(citationsMax)
})
