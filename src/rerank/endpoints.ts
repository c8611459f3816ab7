import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { setRateLimitHeaders } from '#http/rate-limit-headers.ts'
import type { RerankResult } from '#inference/rerank.ts'
import { AppError } from '#lib/errors.ts'
import { newId } from '#lib/id.ts'
import type { Limits } from '#limits/admission.ts'
import type { Rerankers } from './reranker.ts'
import {
  type RerankRequest,
  type RerankResponse,
  readRerankRequest,
  rerankBody,
  rerankResponse,
} from './schema.ts'

export type RerankEndpointsDeps = {
  rerankers: Rerankers
  limits: Pick<Limits, 'rateLimits'>
  /** Read for each request. */
  settings: () => RerankSettings
  config: Pick<Config, 'limits'>
}

/** What applies where a request does not say; null: no model, no limit. */
type RerankSettings = { readonly rerankModel: string | null; readonly rerankTopN: number | null }

/** Cohere bills a query with up to this many documents as one search. */
const documentsPerSearchUnit = 100

export function rerankEndpoints({
  rerankers,
  limits,
  settings,
  config,
}: RerankEndpointsDeps): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/rerank',
      permission: 'can_access_api',
      tag: 'Models',
      summary: 'Rerank documents',
      description: `Orders documents by their relevance to a query. Accepts the common fields of the APIs of Cohere and
Jina. A field that is null counts as absent; unknown fields are ignored.`,
      body: jsonBody(rerankBody, {
        example: {
          model: 'bge-reranker-v2-m3',
          query: 'How long is the notice period?',
          documents: ['The notice period is three months.', 'Rent is due on the first.'],
          top_n: 1,
        },
        read: (body) => readRerankRequest(body, config.limits),
      }),
      responses: {
        200: {
          description: 'The documents by index, the best first.',
          content: json(rerankResponse, exampleResponse),
        },
      },
      errors: {
        rerank_bad_request: [
          'query must be a text that is not blank.',
          {
            code: 'reranker_not_configured',
            message: 'No reranker is configured; name a model.',
          },
        ],
        model_mode_mismatch:
          'The model "llama-3.3-70b" has mode generate; mode rerank is required.',
        model_not_found: 'The model "bge-reranker" does not exist.',
        rate_limit_exceeded:
          'The upstream returned status 429, or too many calls of the key wait for the model.',
        queue_full: 'Too many calls wait for the model.',
        queue_timeout: 'All upstreams of the model were busy for 60 s.',
        upstream_overloaded: 'The upstream returned status 503.',
        upstream_invalid_answer: 'The rerank upstream returned two results for one document.',
        upstream_unreachable: 'The upstream could not be reached.',
        upstream_first_event_timeout: 'The upstream sent no output within 300 s.',
      },
      async handle({ body, context, set }) {
        const { rerankModel, rerankTopN } = settings()
        const model = body.model ?? rerankModel
        if (model === null) throw notConfigured()
        const reranker = await rerankers.find(model, context.principal)
        const topN = lower(body.topN, rerankTopN)
        const reranked = await reranker.rerank({ ...body, topN }, context)
        const rateLimits = limits.rateLimits(context.principal, reranker.model)
        setRateLimitHeaders(set.headers, rateLimits, 'responses')
        return render(reranked, body, model)
      },
    }),
  ]
}

function render(
  { results, totalTokens }: RerankResult,
  { documents, returnDocuments }: RerankRequest,
  model: string,
): RerankResponse {
  return {
    id: newId('rerank_'),
    object: 'rerank',
    model,
    // A document that was not requested is absent: null breaks clients.
    results: results.map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(returnDocuments ? { document: { text: documents[index] ?? '' } } : {}),
    })),
    usage: { total_tokens: totalTokens ?? 0 },
    meta: { billed_units: { search_units: Math.ceil(documents.length / documentsPerSearchUnit) } },
  }
}

function lower(requested: number | null, limit: number | null): number | null {
  if (requested === null || limit === null) return requested ?? limit
  return Math.min(requested, limit)
}

function notConfigured(): AppError {
  return new AppError('rerank_bad_request', 'No reranker is configured; name a model.', {
    code: 'reranker_not_configured',
    param: 'model',
  })
}

const exampleResponse: RerankResponse = {
  id: 'rerank_7k2v9d4m1xq8p0rzsw5b3hngtc',
  object: 'rerank',
  model: 'bge-reranker-v2-m3',
  results: [{ index: 0, relevance_score: 0.9871 }],
  usage: { total_tokens: 34 },
  meta: { billed_units: { search_units: 1 } },
}
