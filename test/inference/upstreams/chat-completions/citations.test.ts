import { expect, test } from 'bun:test'
import { citationsMax } from '#inference/upstream-fields.ts'
import { Citations } from '#inference/upstreams/chat-completions/citations.ts'
import { chunk, decodePayloads } from '#test/support/chat-decoding.ts'

const annotation = (url: string, start: number, end: number) => ({
  url_citation: { url, title: `title of ${url}`, start_index: start, end_index: end },
})
const cited = (url: string, startIndex: number, endIndex: number, title = url) => ({
  kind: 'url' as const,
  url,
  title,
  startIndex,
  endIndex,
})

test('annotations belong to the block that they came with', () => {
  const citations = new Citations()
  citations.readAnnotation(annotation('a', 1, 2))
  expect(citations.take(null, 10)).toEqual([cited('a', 1, 2, 'title of a')])
  expect(citations.take(null, 10)).toEqual([])
  citations.readAnnotation(annotation('b', 3, 4))
  expect(citations.take(null, 10)).toEqual([cited('b', 3, 4, 'title of b')])
})

test('incomplete annotations are completed or left out', () => {
  const citations = new Citations()
  citations.readAnnotation({ url_citation: { url: 'a' } })
  citations.readAnnotation({ url_citation: { title: 'without URL' } })
  citations.readAnnotation({ url_citation: 'a' })
  expect(citations.take(null, 10)).toEqual([cited('a', 0, 0)])
})

test('each marker cites the URL of its number, and URLs without a marker are cited once', () => {
  const citations = new Citations()
  expect(citations.wantsText()).toBe(false)
  citations.readChunk({ citations: ['a', 'b', 'c'], search_results: [{ url: 'b', title: 'B' }] })
  expect(citations.wantsText()).toBe(true)
  const text = 'x [2] y [1] z [2] [9] [0]'
  expect(citations.take(text, text.length)).toEqual([
    cited('b', 2, 5, 'B'),
    cited('a', 8, 11),
    cited('b', 14, 17, 'B'),
    cited('c', text.length, text.length),
  ])
  expect(citations.take('without a marker', 16)).toEqual([])
})

test('annotations are limited, and so are marked addresses', () => {
  const citations = new Citations()
  for (let at = 0; at <= citationsMax; at++) citations.readAnnotation(annotation('a', at, at))
  expect(citations.take(null, 10)).toHaveLength(citationsMax)
  const urls = Array.from({ length: citationsMax + 1 }, (_, at) => `u${at}`)
  citations.readChunk({ citations: urls })
  expect(citations.take('', 0)).toHaveLength(citationsMax)
})

test('in a stream, the citations of a text follow it, and count its characters only', () => {
  const { events, error } = decodePayloads([
    chunk({ content: 'One ' }),
    chunk({ annotations: [annotation('a', 0, 3)] }),
    chunk({ reasoning: 'Hm.' }),
    chunk({ content: 'two' }, null, { citations: ['b'] }),
    chunk({ content: ', three' }, 'stop'),
  ])
  expect(error).toBeNull()
  expect(events.filter(({ type }) => type !== 'finish' && type !== 'text-delta')).toEqual([
    { type: 'generation-start' },
    { type: 'text-start', block: 0, form: 'answer' },
    { type: 'citation', block: 0, citation: cited('a', 0, 3, 'title of a') },
    { type: 'text-end', block: 0, complete: true },
    { type: 'reasoning-start', block: 1 },
    { type: 'reasoning-delta', block: 1, part: 0, text: 'Hm.' },
    { type: 'reasoning-end', block: 1, complete: true },
    { type: 'text-start', block: 2, form: 'answer' },
    { type: 'citation', block: 2, citation: cited('b', 10, 10) },
    { type: 'text-end', block: 2, complete: true },
  ])
})
