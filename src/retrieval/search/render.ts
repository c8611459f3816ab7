import type { FoundPassage, SearchPage } from './answer-schema.ts'
import type { SearchAnswer, SearchResult } from './search.ts'

/** The page that clients of vector stores read, with where each passage is from, and how it was found. */
export function renderSearch(answer: SearchAnswer, queries: readonly string[]): SearchPage {
  return {
    object: 'vector_store.search_results.page',
    search_query: [...queries],
    data: answer.results.map(renderResult),
    has_more: false,
    next_page: null,
    retrieval: {
      mode: answer.mode,
      score_kind: answer.scoreKind,
      degraded: [...answer.degraded],
      indexes: [...answer.indexes],
      took_ms: answer.tookMs,
    },
  }
}

function renderResult(result: SearchResult): FoundPassage {
  return {
    file_id: result.fileId,
    filename: result.filename,
    score: result.score,
    attributes: result.attributes,
    content: [{ type: 'text', text: result.text }],
    collection: result.collection,
    chunk: result.chunk,
  }
}
