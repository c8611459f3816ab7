import type { RequestItem } from '#inference/request.ts'
import { isRecord, type JsonObject } from '#lib/json.ts'
import { fileSearchName } from '#retrieval/file-search/file-search.ts'
import { createPassageRegistry, type Passage } from '#retrieval/file-search/passages.ts'
import type { FileSearchChoice, FileSearchTool } from '#retrieval/file-search/request.ts'
import { readEarlierSearch } from '#retrieval/file-search/search-call.ts'
import type { Filter } from '#retrieval/search/search.ts'
import { readStoreFilters } from '#retrieval/vector-stores/filters.ts'
import { toModelError } from '#retrieval/vector-stores/model-errors.ts'
import { invalidField, readObject, readType } from './read-object.ts'
import { fileSearchCallItem } from './schema/input-items.ts'
import { allowedTools, fileSearchTool, rankingOptions } from './schema/tools.ts'

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

/** Reads what `tool_choice` says about file search; other tools are read by `parseToolChoice`. */
export function parseFileSearchChoice(choice: string | JsonObject | undefined): FileSearchChoice {
  if (choice === 'none') return 'forbidden'
  if (!isRecord(choice)) return 'any'
  if (choice['type'] === 'file_search') return 'forced'
  if (choice['type'] !== 'allowed_tools') return 'any'
  const { tools } = readObject(allowedTools, choice, 'tool_choice')
  const types = tools.map((entry, index) => readType(entry, `tool_choice.tools[${index}]`))
  return types.includes('file_search') ? 'listed' : 'forbidden'
}

/** Reads the file searches of earlier turns. The model sees each as a call of the tool. */
export type FileSearchItems = {
  take(id: string, value: unknown, path: string): RequestItem[]
  /** The passages that they found, by number. */
  found(): readonly Passage[]
}

export function createFileSearchItems(): FileSearchItems {
  const book = createPassageRegistry()
  return {
    take(callId, value, path) {
      const { queries = [], results } = readObject(fileSearchCallItem, value, path)
      const { args, result } = readEarlierSearch({ queries, results }, book)
      const form = 'function'
      return [
        { type: 'tool-call', callId, name: fileSearchName, form, arguments: args },
        { type: 'tool-result', callId, form, parts: [{ type: 'text', text: result }] },
      ]
    },
    found: book.all,
  }
}
