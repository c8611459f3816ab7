import type { Attributes } from '#files/files.ts'
import type { RequestContext } from '#lib/request-context.ts'

/** A condition on an attribute or property of a file; a search requires all of its conditions. */
export type Filter =
  | { readonly field: string; readonly operator: '=='; readonly value: string }
  | { readonly field: string; readonly operator: 'in'; readonly value: readonly string[] }

export type SearchMode = 'hybrid' | 'vector' | 'keyword'

export type SearchRequest = {
  /** References (see `lookup-store.ts`); a collection that the caller may not see is `not_found`. */
  readonly collections: readonly string[]
  /** Ids of further collections, searched if the caller may see them. */
  readonly agentCollections?: readonly string[]
  readonly queries: readonly string[]
  readonly filters: readonly Filter[]
  /** 1 to 50; null: as configured. */
  readonly topK: number | null
  /** Applies to scores of the kinds `rerank` and `cosine` only. */
  readonly scoreMin: number | null
  readonly mode: SearchMode
  /** Null: if a reranker is configured. */
  readonly rerank: boolean | null
}

/** The score of each step that found a passage; null where it did not, or did not run. */
export type Match = {
  /** 0 to 1, by the keywords of the query in the passage. */
  readonly keyword: number | null
  /** Cosine similarity of query and passage, -1 to 1. */
  readonly similarity: number | null
  /** The score of the reranker, in its own scale. */
  readonly rerank: number | null
}

export type SearchResult = {
  readonly collection: string
  readonly collectionId: string
  readonly fileId: string
  readonly filename: string
  readonly score: number
  readonly attributes: Attributes
  readonly text: string
  readonly match: Match
  readonly chunk: {
    readonly id: string
    readonly index: number
    readonly page: number | null
    readonly start: number
    readonly end: number
  }
}

export type SearchResponse = {
  /** Best first, each passage once. */
  readonly results: readonly SearchResult[]
  readonly mode: SearchMode
  readonly scoreKind: 'rerank' | 'rrf' | 'cosine' | 'text'
  /** Steps that failed and made the result worse: `reranker`, `vector`. */
  readonly degraded: readonly string[]
  readonly indexes: readonly {
    readonly id: string
    readonly model: string
    readonly role: 'source' | 'target'
  }[]
  /** The model that ordered the results; null: none did. */
  readonly reranker: string | null
  readonly tookMs: number
  /** Those of `agentCollections` that the caller does not see. */
  readonly absent: readonly string[]
}

/**
 * Finds passages of files that the caller may find (see `AccessMode`).
 *
 * Throws `not_found` for a collection, `service_unavailable` if no index can be searched.
 */
export type Search = (context: RequestContext, request: SearchRequest) => Promise<SearchResponse>
