import { type Static, Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import { fileAttributes } from '#retrieval/collections/answer-schema.ts'
import { searchMode } from './schema.ts'

/** What a search answers, of collections and of vector stores. */

const foundPassage = Type.Object({
  file_id: Type.String({ format: 'uuid' }),
  filename: Type.String(),
  score: Type.Number({ description: 'See `retrieval.score_kind`.' }),
  attributes: fileAttributes,
  content: Type.Array(Type.Object({ type: Type.Literal('text'), text: Type.String() })),
  collection: Type.String({ description: 'The name of the collection that it was found in.' }),
  chunk: Type.Object(
    {
      id: Type.String(),
      index: Type.Integer({ description: 'Its place in the file, from 0.' }),
      page: nullable(Type.Integer(), 'The page that it begins on, from 1, where there are pages.'),
      start: Type.Integer(),
      end: Type.Integer(),
    },
    { description: 'Where it stands: characters of the text of the file.' },
  ),
})
export type FoundPassage = Static<typeof foundPassage>

export const searchPage = Type.Object(
  {
    object: Type.Literal('vector_store.search_results.page'),
    search_query: Type.Array(Type.String()),
    data: Type.Array(foundPassage, { description: 'The best first.' }),
    has_more: Type.Literal(false),
    next_page: Type.Null(),
    retrieval: Type.Object(
      {
        mode: searchMode,
        score_kind: Type.Union(
          [
            Type.Literal('rerank'),
            Type.Literal('rrf'),
            Type.Literal('cosine'),
            Type.Literal('text'),
          ],
          { description: 'What the scores are; those of `rrf` and `text` only give an order.' },
        ),
        degraded: Type.Array(Type.String(), {
          description: 'What could not be asked, so that this is worse than it might be.',
          examples: [['reranker'], ['vector']],
        }),
        indexes: Type.Array(
          Type.Object({
            id: Type.String(),
            model: Type.String(),
            role: Type.Union([Type.Literal('source'), Type.Literal('target')]),
          }),
        ),
        took_ms: Type.Integer(),
      },
      { description: 'How it was found.' },
    ),
  },
  { $id: 'SearchResults' },
)
export type SearchPage = Static<typeof searchPage>

export const searchExample: SearchPage = {
  object: 'vector_store.search_results.page',
  search_query: ['How long is the warranty?'],
  data: [
    {
      file_id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61',
      filename: 'handbook.pdf',
      score: 0.0325,
      attributes: { language: 'en' },
      content: [{ type: 'text', text: 'The warranty ends after two years.' }],
      collection: 'handbooks',
      chunk: { id: '412', index: 7, page: 3, start: 5210, end: 5244 },
    },
  ],
  has_more: false,
  next_page: null,
  retrieval: {
    mode: 'hybrid',
    score_kind: 'rrf',
    degraded: [],
    indexes: [{ id: '1', model: 'local-hash', role: 'source' }],
    took_ms: 12,
  },
}
