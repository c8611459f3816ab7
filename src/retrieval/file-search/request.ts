import type { HostedChoice } from '#inference/tool-loop/own-function.ts'
import type { Filter } from '#retrieval/search/search.ts'
import type { Passage } from './passages.ts'

/** The file search of a request. */
export type FileSearchRequest = {
  /** Null: no file search. */
  readonly tool: FileSearchTool | null
  readonly choice: HostedChoice
  /** Passages of earlier turns in the input, numbered from 1. */
  readonly found: readonly Passage[]
}

export type FileSearchTool = {
  /** From the caller; a search fails if the caller does not see one. */
  readonly collections: readonly string[]
  /** Ids of the collections of an agent, searched if the caller sees them. */
  readonly agentCollections: readonly string[]
  readonly filters: readonly Filter[]
  /** 1 to 50; null: as configured. */
  readonly resultsMax: number | null
  readonly scoreMin: number | null
  /** Null: as configured. */
  readonly rerank: boolean | null
}

export const noFileSearch: FileSearchRequest = { tool: null, choice: 'any', found: [] }

/** Adds the collections of an agent. */
export function withCollections(
  request: FileSearchRequest,
  agentCollections: readonly string[],
): FileSearchRequest {
  if (agentCollections.length === 0) return request
  return { ...request, tool: { ...(request.tool ?? defaultTool), agentCollections } }
}

const defaultTool: FileSearchTool = {
  collections: [],
  agentCollections: [],
  filters: [],
  resultsMax: null,
  scoreMin: null,
  rerank: null,
}
