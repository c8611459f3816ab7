import type { HostedToolItem } from '#inference/events.ts'
import type { HostedCall, HostedOutcome } from '#inference/tool-loop/hosted-tools.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord, parseJson } from '#lib/json.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { readQueryText } from '#retrieval/search/schema.ts'
import type { Search, SearchResponse, SearchResult } from '#retrieval/search/search.ts'
import type { Log } from '#telemetry/log.ts'
import { type Passage, type PassageBook, tellPassages, withinReach } from './passages.ts'
import type { FileSearchTool } from './request.ts'

export type SearchCallDeps = {
  readonly search: Search
  readonly log: Pick<Log, 'error'>
}

type Asked = {
  readonly tool: FileSearchTool
  readonly caller: RequestPrincipal
  readonly book: PassageBook
}

/** More questions of one call are left out. */
const queriesMax = 10

/** A search as a `file_search_call` item, in the name of the caller. */
export function searchFiles(deps: SearchCallDeps, asked: Asked): HostedCall {
  const begin = (args: string): HostedToolItem => ({
    type: 'file_search_call',
    status: 'in_progress',
    queries: askedQueries(args),
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
    async run(args, signal) {
      try {
        const queries = readQueries(args)
        const answer = await deps.search(asked.caller, requestOf(asked.tool, queries), signal)
        const results = withinReach(answer.results.map(withPassage))
        return {
          item: {
            ...begin(args),
            queries,
            status: 'completed',
            results: results.map(renderResult),
          },
          stage: 'completed',
          result: tellAnswer(results, answer, asked),
        }
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof AppError && error.kind !== 'internal_error') {
          return fail(args, error.message)
        }
        deps.log.error('a search of files failed', { error })
        return fail(args, 'something is wrong with it, and that was noted.')
      }
    },
  }
}

function requestOf(tool: FileSearchTool, queries: readonly string[]): Parameters<Search>[1] {
  return {
    collections: tool.collections,
    optionalCollections: tool.agentCollections,
    queries,
    filters: tool.filters,
    topK: tool.resultsMax,
    scoreMin: tool.scoreMin,
    mode: 'hybrid',
    rerank: tool.rerank,
  }
}

/** What the model wrote, as far as it is texts: one or several, whatever it was asked for. */
function askedQueries(args: string): readonly string[] {
  const { queries, query } = asRecord(parseJson(args))
  const given = [queries, query].flat()
  return given.filter((text) => typeof text === 'string').slice(0, queriesMax)
}

/** Throws an `AppError` whose message says to the model what is wrong. */
function readQueries(args: string): readonly string[] {
  const queries = askedQueries(args)
  if (queries.length > 0) return queries.map((text) => readQueryText(text, 'queries'))
  throw new AppError('invalid_request', '"queries" must be a list of texts.')
}

type Found = SearchResult & Passage

function withPassage(result: SearchResult): Found {
  return { ...result, page: result.chunk.page }
}

/** The last field is ours. */
function renderResult({ attributes, fileId, filename, score, text, page }: Found): object {
  return { attributes, file_id: fileId, filename, score, text, ...(page === null ? {} : { page }) }
}

/** The names of what an agent searches are not for everybody who calls it. */
function tellAnswer(
  results: readonly Found[],
  { absent }: SearchResponse,
  { tool, book }: Asked,
): string {
  const told = tellPassages(results, book)
  if (absent.length === 0) return told
  const count = tool.agentCollections.length
  const missing = `${absent.length} of the ${count} collections that belong to this search are not there, or not for this user to see.`
  return `${missing}\n\n${told}`
}

/** A search that an input holds, as the model was told of it. */
export function readEarlierSearch(
  { queries, results }: { queries: readonly unknown[]; results: readonly unknown[] | undefined },
  book: PassageBook,
): { args: string; result: string } {
  const passages = results?.filter(isRecord).flatMap(passageIn)
  return {
    args: JSON.stringify({ queries }),
    result: passages === undefined ? notKept : tellPassages(withinReach(passages), book),
  }
}

const notKept = 'What this search gave is not at hand any more; search again where you need it.'

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
