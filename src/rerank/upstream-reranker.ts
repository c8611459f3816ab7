import { type AskDeps, askUpstream, type Question } from '#inference/ask-upstream.ts'
import type { Target } from '#inference/generate.ts'
import { AppError } from '#lib/errors.ts'
import { asRecord, isRecord } from '#lib/json.ts'
import type { Reranked, Reranker, RerankRequest } from './reranker.ts'

/** A model behind an upstream that answers `/rerank` as Cohere, Jina, vLLM or TEI do. */
export function createUpstreamReranker(
  deps: AskDeps,
  { model, targets }: { model: string; targets: readonly Target[] },
): Reranker {
  return {
    model,
    async rerank(request, signal) {
      if (request.documents.length === 0) return { results: [], totalTokens: 0 }
      const { results, totalTokens } = await askUpstream(deps, { targets, signal }, (target) =>
        questionOf(target, request),
      )
      const best = results.toSorted((a, b) => b.score - a.score || a.index - b.index)
      return { results: best.slice(0, request.topN ?? best.length), totalTokens }
    },
  }
}

function questionOf({ upstream, model }: Target, request: RerankRequest): Question<Reranked> {
  const { query, documents, topN, tokensPerDocumentMax } = request
  // A field that is null is an error to some servers, and TEI knows neither a model nor a top.
  const body =
    upstream.quirks.rerankFields === 'texts'
      ? { query, texts: documents, truncate: true }
      : {
          model,
          query,
          documents,
          ...(topN === null ? {} : { top_n: Math.min(topN, documents.length) }),
          ...(tokensPerDocumentMax === undefined
            ? {}
            : { max_tokens_per_doc: tokensPerDocumentMax }),
        }
  return { path: '/rerank', body, read: (answer) => readAnswer(answer, documents.length) }
}

/** `{results: [{index, relevance_score}], usage | meta}`, or `[{index, score}]`. */
function readAnswer(answer: unknown, count: number): Reranked {
  const listed = Array.isArray(answer) ? answer : asRecord(answer)['results']
  if (!Array.isArray(listed)) throw invalid('no list of results')
  const seen = new Set<number>()
  const results = listed.map((entry: unknown) => {
    const { index, relevance_score: relevance, score = relevance } = asRecord(entry)
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count) {
      throw invalid('a result of a document that it was not given')
    }
    if (seen.has(index)) throw invalid('two results of one document')
    seen.add(index)
    if (typeof score !== 'number' || !Number.isFinite(score)) {
      throw invalid('a score that is no number')
    }
    return { index, score }
  })
  return { results, totalTokens: readTokens(answer) }
}

function readTokens(answer: unknown): number | null {
  const { usage, meta } = asRecord(answer)
  const billed = isRecord(meta) ? asRecord(meta['tokens'])['input_tokens'] : undefined
  const { total_tokens: told = billed } = asRecord(usage)
  return typeof told === 'number' ? told : null
}

function invalid(what: string): AppError {
  return new AppError('upstream_invalid_answer', `The rerank upstream answered with ${what}.`)
}
