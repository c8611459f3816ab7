import { expect, test } from 'bun:test'
import { fuse, type Hit } from '#retrieval/search/fuse.ts'

function hit(chunkId: string, rest: Partial<Hit>): Hit {
  const place = { indexId: 1, collectionId: 'c', fileId: 'f' }
  return { chunkId, ...place, distance: null, keywordScore: null, ...rest }
}

function ids(queries: readonly (readonly Hit[])[], models: readonly string[] = ['m', 'm']) {
  const { kind, scored } = fuse(queries, (indexId) => models[indexId - 1] ?? '')
  return { kind, ids: scored.map((one) => one.hit.chunkId) }
}

test('distances of one model are compared across indexes', () => {
  const hits = [
    hit('near', { indexId: 1, distance: 0.1 }),
    hit('far', { indexId: 1, distance: 0.9 }),
    hit('nearer', { indexId: 2, distance: 0.05 }),
    hit('farther', { indexId: 2, distance: 1.5 }),
  ]
  expect(ids([hits])).toEqual({ kind: 'cosine', ids: ['nearer', 'near', 'far', 'farther'] })
})

test('results of two models are fused by rank', () => {
  const hits = [
    hit('a1', { indexId: 1, distance: 0.1 }),
    hit('a2', { indexId: 1, distance: 0.2 }),
    hit('b1', { indexId: 2, distance: 0.8 }),
    hit('b2', { indexId: 2, distance: 0.9 }),
  ]
  expect(ids([hits], ['m', 'n'])).toEqual({ kind: 'rrf', ids: ['a1', 'b1', 'a2', 'b2'] })
})

test('hits of both rankings come first', () => {
  const hits = [
    hit('near', { distance: 0.1 }),
    hit('both', { distance: 0.2, keywordScore: 0.5 }),
    hit('worded', { keywordScore: 0.9 }),
  ]
  expect(ids([hits])).toEqual({ kind: 'rrf', ids: ['both', 'near', 'worded'] })
})

test.each([
  ['as good as the best of the query', 0.4, ['nearest', 'worded', 'near', 'next']],
  ['half as good', 0.2, ['nearest', 'near', 'next', 'worded']],
])('beside a model, keywords that are %s', (_, keywordScore, order) => {
  const hits = [
    hit('nearest', { distance: 0.1, keywordScore: 0.4 }),
    hit('near', { distance: 0.2 }),
    hit('next', { distance: 0.9 }),
    hit('worded', { keywordScore }),
  ]
  expect(ids([hits]).ids).toEqual(order)
})

test('the only passage with the keywords is next to the nearest one', () => {
  const near = Array.from({ length: 50 }, (_, at) => hit(`near ${at}`, { distance: at / 100 }))
  const found = ids([[...near, hit('worded', { keywordScore: 0.6 })]]).ids
  expect(found.slice(0, 3)).toEqual(['near 0', 'worded', 'near 1'])
  const both = [hit('worded', { distance: 0.99, keywordScore: 0.6 }), ...near]
  expect(ids([both]).ids[0]).toBe('worded')
})

test('local-hash only adds passages after those with keywords', () => {
  const hits = [
    hit('near', { distance: 0.1 }),
    hit('second', { distance: 0.2, keywordScore: 0.5 }),
    hit('first', { keywordScore: 0.9 }),
    hit('third', { distance: 0.15, keywordScore: 0.4 }),
  ]
  const { kind, ids: order } = ids([hits], ['local-hash'])
  expect({ kind, order }).toEqual({ kind: 'rrf', order: ['first', 'second', 'third', 'near'] })
  const best = [hit('x', { distance: 0, keywordScore: 1 })]
  expect(fuse([best], () => 'local-hash').scored).toMatchObject([{ score: 1 }])
})

test('the first rank in every list scores 1', () => {
  const first = [hit('x', { distance: 0, keywordScore: 1 })]
  expect(fuse([first, first], () => 'm').scored).toMatchObject([{ score: 1 }])
})

test('a passage found by several queries has its best score', () => {
  const { scored } = fuse(
    [[hit('x', { distance: 0.5 })], [hit('x', { distance: 0.2 })], [hit('y', { distance: 0.4 })]],
    () => 'm',
  )
  expect(scored.map((one) => [one.hit.chunkId, one.score])).toEqual([
    ['x', 0.8],
    ['y', 0.6],
  ])
})

test('no hits give an empty order', () => {
  expect(fuse([[], []], () => 'm')).toEqual({ kind: 'text', scored: [] })
})
