import type { JsonObject } from '#lib/json.ts'
import type { FileSearchTool } from '#retrieval/file-search/request.ts'
import type { Filter } from '#retrieval/search/search.ts'
import { readStoreFilters } from '#retrieval/vector-stores/filters.ts'
import { toModelError } from '#retrieval/vector-stores/model-errors.ts'
import { invalidField, readObject } from './read-object.ts'
import { fileSearchTool, rankingOptions } from './schema/tools.ts'

/** Parses a tool of type `file_search`: collections that the model may search, by name or id. */
export function parseFileSearchTool(value: unknown, path: string): FileSearchTool {
  const tool = readObject(fileSearchTool, value, path)
  const ranking = readObject(rankingOptions, tool.ranking_options ?? {}, `${path}.ranking_options`)
  return {
    collections: readNames(tool.vector_store_ids, `${path}.vector_store_ids`),
    agentCollections: [],
    filters: readFilters(tool.filters, `${path}.filters`),
    resultsMax: tool.max_num_results ?? null,
    scoreMin: ranking.score_threshold ?? null,
    rerank: ranking.ranker === 'none' ? false : null,
  }
}

const nameCharsMax = 256

function readNames(values: readonly unknown[], path: string): readonly string[] {
  return values.map((value, index) => {
    if (typeof value === 'string' && value !== '' && value.length <= nameCharsMax) return value
    throw invalidField(`${path}[${index}]`, 'must be the name or id of a collection')
  })
}

function readFilters(filters: JsonObject | undefined, path: string): readonly Filter[] {
  try {
    return readStoreFilters(filters, path)
  } catch (error) {
    throw toModelError(error)
  }
}
