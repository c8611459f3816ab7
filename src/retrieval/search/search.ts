import type { Attributes } from '#files/files.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'

/** A condition on the attributes of a file, or on what is known of it. All of them must hold. */
export type Filter =
  | { readonly field: string; readonly operator: '=='; readonly value: string }
  | { readonly field: string; readonly operator: 'in'; readonly value: readonly string[] }

export type SearchMode = 'hybrid' | 'vector' | 'keyword'

export type SearchRequest = {
  /** Names of collections, or ids; what the caller may not see is `not_found`. */
  readonly collections: readonly string[]
  /** More of them, searched as far as the caller may see them. */
  readonly collectionsIfVisible?: readonly string[]
  readonly queries: readonly string[]
  readonly filters: readonly Filter[]
  /** 1 to 50; null: as many as the settings say. */
  readonly topK: number | null
  /** Only where scores mean something by themselves (reranked, or vector alone). */
  readonly scoreMin: number | null
  readonly mode: SearchMode
  /** Null: as configured. */
  readonly rerank: boolean | null
}

export type SearchResult = {
  readonly collection: string
  readonly fileId: string
  readonly filename: string
  readonly score: number
  readonly attributes: Attributes
  readonly text: string
  readonly chunk: {
    readonly id: string
    readonly index: number
    readonly page: number | null
    readonly start: number
    readonly end: number
  }
}

export type SearchAnswer = {
  /** The best first; no passage twice, and never fewer than there are. */
  readonly results: readonly SearchResult[]
  readonly mode: SearchMode
  readonly scoreKind: 'rerank' | 'rrf' | 'cosine' | 'text'
  /** What could not be asked, so that the answer is worse than it might be: `reranker`, `vector`. */
  readonly degraded: readonly string[]
  readonly indexes: readonly {
    readonly id: string
    readonly model: string
    readonly role: 'source' | 'target'
  }[]
  readonly tookMs: number
  /** Those of `collectionsIfVisible` that are not there for the caller. */
  readonly absent: readonly string[]
}

/**
 * Finds passages. What the caller may not read is never looked at, whoever asks for it.
 *
 * Throws `not_found` for a collection, `service_unavailable` where nothing can be searched.
 */
export type Search = (
  caller: RequestPrincipal,
  request: SearchRequest,
  signal: AbortSignal,
) => Promise<SearchAnswer>
