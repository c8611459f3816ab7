import type { Filter } from '#retrieval/search/search.ts'
import type { Passage } from './passages.ts'

/** What a request says about searching files. */
export type FileSearchRequest = {
  /** Null: nothing is to be searched. */
  readonly tool: FileSearchTool | null
  readonly choice: FileSearchChoice
  /** What earlier turns have found and the input still holds, by number from 1. */
  readonly found: readonly Passage[]
}

export type FileSearchTool = {
  /** Names or ids, as the caller gives them: a search fails where one is not there for the caller. */
  readonly collections: readonly string[]
  /** Those of an agent, searched as far as whoever calls it may see them. */
  readonly agentCollections: readonly string[]
  readonly filters: readonly Filter[]
  /** 1 to 50; null: as many as the settings say. */
  readonly resultsMax: number | null
  readonly scoreMin: number | null
  /** Null: as configured. */
  readonly rerank: boolean | null
}

/** What `tool_choice` says of the tool. `listed`: it is one of those that may be called, alone. */
export type FileSearchChoice = 'any' | 'forced' | 'listed' | 'forbidden'

export const noFileSearch: FileSearchRequest = { tool: null, choice: 'any', found: [] }

/** The request with the collections of an agent. */
export function withCollections(
  asked: FileSearchRequest,
  agentCollections: readonly string[],
): FileSearchRequest {
  if (agentCollections.length === 0) return asked
  return { ...asked, tool: { ...(asked.tool ?? plainTool), agentCollections } }
}

const plainTool: FileSearchTool = {
  collections: [],
  agentCollections: [],
  filters: [],
  resultsMax: null,
  scoreMin: null,
  rerank: null,
}
