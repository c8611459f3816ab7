import { AppError } from '#lib/errors.ts'
import { asRecord } from '#lib/json.ts'
import type { AdapterContext } from './upstream.ts'
import { readNumber } from './upstream-fields.ts'
import { postJson } from './upstream-http.ts'

export type RerankInput = {
  readonly query: string
  readonly documents: readonly string[]
  readonly topN: number | null
  readonly tokensPerDocumentMax?: number
}

/** `index` is that of the document in the request; every document appears at most once. */
export type RerankResult = {
  readonly results: readonly { readonly index: number; readonly score: number }[]
  readonly totalTokens: number | null
}

/** POST /rerank as Cohere, Jina, vLLM and TEI define it. */
export async function postRerank(
  input: RerankInput,
  context: AdapterContext,
): Promise<RerankResult> {
  const response = await postJson(context, '/rerank', encodeRerank(input, context))
  return readResults(response, input.documents.length)
}

/** Some servers refuse null fields, and TEI knows neither `model` nor `top_n`. */
function encodeRerank(
  { query, documents, topN, tokensPerDocumentMax }: RerankInput,
  { upstream, model }: AdapterContext,
) {
  if (upstream.quirks.rerankFields === 'texts') return { query, texts: documents, truncate: true }
  return {
    model,
    query,
    documents,
    ...(topN === null ? {} : { top_n: Math.min(topN, documents.length) }),
    ...(tokensPerDocumentMax === undefined ? {} : { max_tokens_per_doc: tokensPerDocumentMax }),
  }
}

/** Reads `{results: [{index, relevance_score}], usage | meta}`, or `[{index, score}]`. */
function readResults(response: unknown, count: number): RerankResult {
  const listed = Array.isArray(response) ? response : asRecord(response)['results']
  if (!Array.isArray(listed)) throw invalidRerank('no list of results')
  const seen = new Set<number>()
  const results = listed.map((entry: unknown) => {
    const { index, relevance_score: relevance, score = relevance } = asRecord(entry)
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count) {
      throw invalidRerank('a result for an unknown document')
    }
    if (seen.has(index)) throw invalidRerank('two results for one document')
    seen.add(index)
    if (typeof score !== 'number' || !Number.isFinite(score)) {
      throw invalidRerank('a score that is not a number')
    }
    return { index, score }
  })
  return { results, totalTokens: readTokens(response) }
}

function readTokens(response: unknown): number | null {
  const { usage, meta } = asRecord(response)
  const billed = asRecord(asRecord(meta)['tokens'])['input_tokens']
  const { total_tokens: total = billed } = asRecord(usage)
  return readNumber(total)
}

function invalidRerank(found: string): AppError {
  return new AppError('upstream_invalid_answer', `The rerank upstream returned ${found}.`)
}
