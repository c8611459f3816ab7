import { type Static, Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import { fileAttributes } from '#retrieval/collections/record.ts'
import { searchMode } from './schema.ts'
import type { SearchResponse } from './search.ts'

/** The response to searches of collections and vector stores: the page of the vector store protocol with more fields. */
export const searchPage = Type.Object(
  {
    object: Type.Literal('vector_store.search_results.page'),
    search_query: Type.Array(Type.String()),
    data: Type.Array(
      Type.Object({
        file_id: Type.String({ format: 'uuid' }),
        filename: Type.String(),
        score: Type.Number({ description: 'See `retrieval.score_kind`.' }),
        match: Type.Object(
          {
            keyword: nullable(Type.Number(), 'By the keywords of the query, from 0 to 1.'),
            similarity: nullable(Type.Number(), 'Cosine similarity of query and passage.'),
            rerank: nullable(Type.Number(), 'By the reranker, in its own scale.'),
          },
          {
            description: 'Why it was found: the score of each step, null if that did not find it.',
          },
        ),
        attributes: fileAttributes,
        content: Type.Array(Type.Object({ type: Type.Literal('text'), text: Type.String() })),
        collection: Type.String({ description: 'The name of the collection.' }),
        collection_id: Type.String({ format: 'uuid' }),
        chunk: Type.Object(
          {
            id: Type.String(),
            index: Type.Integer({ description: 'Position in the file, from 0.' }),
            page: nullable(Type.Integer(), 'The first page, from 1; null: no pages.'),
            start: Type.Integer(),
            end: Type.Integer(),
          },
          { description: 'Position in the text of the file, in characters.' },
        ),
      }),
      { description: 'Best first.' },
    ),
    has_more: Type.Literal(false),
    next_page: nullable(Type.String(), 'Always null: all results are on one page.'),
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
          { description: 'Scores of `rrf` and `text` are relative.' },
        ),
        degraded: Type.Array(Type.String(), {
          description: 'Steps that failed and made the result worse.',
          examples: [['reranker'], ['vector']],
        }),
        indexes: Type.Array(
          Type.Object({
            id: Type.String(),
            model: Type.String({ description: 'The embedding model.' }),
            role: Type.Union([Type.Literal('source'), Type.Literal('target')]),
          }),
        ),
        reranker: nullable(Type.String(), 'The model that ordered the results; null: none did.'),
        took_ms: Type.Integer(),
      },
      { description: 'How the passages were found.' },
    ),
  },
  { $id: 'SearchResults' },
)
type SearchPage = Static<typeof searchPage>

export function renderSearch(response: SearchResponse, queries: readonly string[]): SearchPage {
  return {
    object: 'vector_store.search_results.page',
    search_query: [...queries],
    data: response.results.map((result) => ({
      file_id: result.fileId,
      filename: result.filename,
      score: result.score,
      match: result.match,
      attributes: result.attributes,
      content: [{ type: 'text', text: result.text }],
      collection: result.collection,
      collection_id: result.collectionId,
      chunk: result.chunk,
    })),
    has_more: false,
    next_page: null,
    retrieval: {
      mode: response.mode,
      score_kind: response.scoreKind,
      degraded: [...response.degraded],
      indexes: [...response.indexes],
      reranker: response.reranker,
      took_ms: response.tookMs,
    },
  }
}

export const searchExample: SearchPage = {
  object: 'vector_store.search_results.page',
  search_query: ['How long is the warranty?'],
  data: [
    {
      file_id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61',
      filename: 'handbook.pdf',
      score: 0.0325,
      match: { keyword: 0.62, similarity: 0.41, rerank: null },
      attributes: { language: 'en' },
      content: [{ type: 'text', text: 'The warranty ends after two years.' }],
      collection: 'handbooks',
      collection_id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a60',
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
    reranker: null,
    took_ms: 12,
  },
}
