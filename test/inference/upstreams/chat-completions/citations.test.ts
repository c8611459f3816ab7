import { expect, test } from 'bun:test'
import { Citations } from '#inference/upstreams/chat-completions/citations.ts'

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
