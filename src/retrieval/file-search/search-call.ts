import type { HostedToolItem } from '#inference/events.ts'
import type { HostedCall, HostedOutcome } from '#inference/tool-loop/hosted-tools.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, parseJson } from '#lib/json.ts'
import { requestFields } from '#lib/request-context.ts'
import { readQueryText } from '#retrieval/search/schema.ts'
import type {
  Search,
  SearchRequest,
  SearchResponse,
  SearchResult,
} from '#retrieval/search/search.ts'
import type { Log } from '#telemetry/log.ts'
import { limitPassages, type Passage, type PassageRegistry, renderPassages } from './passages.ts'
import type { FileSearchTool } from './request.ts'

export type SearchCallDeps = {
  readonly search: Search
  readonly log: Pick<Log, 'error'>
}

type SearchCallParams = {
  readonly tool: FileSearchTool
  readonly registry: PassageRegistry
}

/** Further queries of a call are ignored. */
const queriesMax = 10

/** Runs a search with the rights of the principal, as a `file_search_call` item. */
export function searchFiles(deps: SearchCallDeps, params: SearchCallParams): HostedCall {
  const { tool, registry } = params
  const begin = (args: string): HostedToolItem => ({
    type: 'file_search_call',
    status: 'in_progress',
    queries: parseQueries(args),
    results: null,
  })
  const fail = (args: string, reason: string): HostedOutcome => ({
    item: { ...begin(args), status: 'failed' },
    stage: 'failed',
    result: `The search failed: ${reason}`,
  })
  return {
    isCounted: true,
    streamsArguments: false,
    stages: ['in_progress', 'searching'],
    begin,
    refuse: fail,
    async run(args, context) {
      try {
        const queries = readQueries(args)
        const response = await deps.search(context, requestOf(tool, queries))
        const results = limitPassages(
          response.results.map((result) => ({ ...result, page: result.chunk.page })),
        )
        return {
          item: {
            ...begin(args),
            queries,
            status: 'completed',
            results: results.map(renderResult),
          },
          stage: 'completed',
          result: renderForModel(results, response, { tool, registry }),
        }
      } catch (error) {
        context.signal.throwIfAborted()
        if (error instanceof AppError && error.kind !== 'internal_error') {
          return fail(args, error.message)
        }
        deps.log.error('file search failed', { ...requestFields(context), error })
        return fail(args, 'an internal error occurred.')
      }
    },
  }
}

function requestOf(tool: FileSearchTool, queries: readonly string[]): SearchRequest {
  return {
    collections: tool.collections,
    agentCollections: tool.agentCollections,
    queries,
    filters: tool.filters,
    topK: tool.resultsMax,
    scoreMin: tool.scoreMin,
    mode: 'hybrid',
    rerank: tool.rerank,
  }
}

/** Models also write `query`, or a single text. */
function parseQueries(args: string): readonly string[] {
  const { queries, query } = asRecord(parseJson(args))
  const texts = [queries, query].flat()
  return texts.filter((text) => typeof text === 'string').slice(0, queriesMax)
}

/** Throws an `AppError` whose message the model reads. */
function readQueries(args: string): readonly string[] {
  const queries = parseQueries(args)
  if (queries.length > 0) return queries.map((text) => readQueryText(text, 'queries'))
  throw new AppError('invalid_request', '"queries" must be a list of texts.')
}

type FoundPassage = SearchResult & Passage

/** `page` is an extension of the protocol. */
function renderResult(result: FoundPassage): object {
  const { attributes, fileId, filename, score, text, page } = result
  return { attributes, file_id: fileId, filename, score, text, ...(page === null ? {} : { page }) }
}

/** Does not name the collections of an agent, which are not public. */
function renderForModel(
  results: readonly FoundPassage[],
  { absent }: SearchResponse,
  { tool, registry }: SearchCallParams,
): string {
  const passages = renderPassages(results, registry)
  if (absent.length === 0) return passages
  const count = tool.agentCollections.length
  return `${absent.length} of the ${count} collections of this search do not exist or are not visible to this user.\n\n${passages}`
}

/** The arguments and the result of a search in the input, as the model saw them. */
export function readEarlierSearch(
  { queries, results }: { queries: readonly unknown[]; results: readonly unknown[] | undefined },
  registry: PassageRegistry,
): { args: string; result: string } {
  const passages = results?.filter(isRecord).flatMap(passageIn)
  return {
    args: JSON.stringify({ queries }),
    result:
      passages === undefined
        ? 'The results of this search are no longer available; search again if needed.'
        : renderPassages(limitPassages(passages), registry),
  }
}

function passageIn(result: Readonly<Record<string, unknown>>): Passage[] {
  const { file_id: fileId, filename, text, page } = result
  if (typeof fileId !== 'string' || typeof text !== 'string') return []
  return [
    {
      fileId,
      filename: typeof filename === 'string' ? filename : fileId,
      page: typeof page === 'number' ? page : null,
      text,
    },
  ]
}
