import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import type { RerankResult } from '#inference/rerank.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import { createRequestContext } from '#lib/request-context.ts'
import type { RetrievalSettings } from '#retrieval/settings.ts'
import { rerankOperation } from './operations.ts'
import { type RerankBody, readRerankRequest } from './read-request.ts'
import type { Rerankers } from './reranker.ts'
import type { RerankAnswer } from './schema.ts'

export type RerankRoutesDeps = {
  auth: Auth
  rerankers: Rerankers
  settings: RetrievalSettings
  config: Pick<Config, 'limits'>
}

/** What Cohere bills as one search: a query with up to so many documents. */
const documentsPerSearchUnit = 100

/** `POST /v1/rerank`, in the fields that Cohere's and Jina's have in common. */
export function rerankRoutes({ auth, rerankers, settings, config }: RerankRoutesDeps) {
  return new Elysia({ name: 'rerank', prefix: '/v1/rerank' }).use(guard(auth)).post(
    '/',
    async ({ request, principal, set }) => {
      const asked = readRerankRequest(await readJsonBody(request, config.limits), config.limits)
      const { rerankModel, rerankTopN } = settings()
      const model = asked.model ?? rerankModel
      if (model === null) throw notConfigured()
      const reranker = await rerankers.find(model)
      const topN = lowest(asked.topN, rerankTopN)
      const reranked = await reranker.rerank(
        { ...asked, topN },
        createRequestContext({ requestId: requestIdOf(set), principal, signal: request.signal }),
      )
      return render(reranked, { asked, model })
    },
    {
      requires: 'can_access_api',
      parse: 'none',
      detail: rerankOperation,
    },
  )
}

function render(
  { results, totalTokens }: RerankResult,
  { asked, model }: { asked: RerankBody; model: string },
): RerankAnswer {
  const { documents, returnDocuments } = asked
  return {
    id: newId('rerank_'),
    object: 'rerank',
    model,
    // A document that was not asked for is absent: null breaks clients.
    results: results.map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(returnDocuments ? { document: { text: documents[index] ?? '' } } : {}),
    })),
    usage: { total_tokens: totalTokens ?? 0 },
    meta: { billed_units: { search_units: Math.ceil(documents.length / documentsPerSearchUnit) } },
  }
}

function lowest(asked: number | null, ceiling: number | null): number | null {
  if (asked === null || ceiling === null) return asked ?? ceiling
  return Math.min(asked, ceiling)
}

function notConfigured(): AppError {
  return new AppError('rerank_bad_request', 'No reranker is configured; name a model.', {
    code: 'reranker_not_configured',
    param: 'model',
  })
}
