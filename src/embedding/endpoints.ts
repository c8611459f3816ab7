import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import type { AnswerLine } from '#batches/batches.ts'
import type { Config } from '#config/schema.ts'
import { setRateLimitHeaders } from '#http/rate-limit-headers.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Limits } from '#limits/admission.ts'
import type { Embedder, Embedders } from './embedder.ts'
import {
  type EmbeddingList,
  type EmbeddingRequest,
  embeddingBody,
  embeddingList,
  readEmbeddingRequest,
  readTexts,
} from './schema.ts'

export type EmbeddingEndpointsDeps = {
  embedders: Embedders
  limits: Pick<Limits, 'rateLimits'>
  config: Pick<Config, 'limits'>
}

export function embeddingEndpoints({
  embedders,
  config,
  limits,
}: EmbeddingEndpointsDeps): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/embeddings',
      permission: 'can_access_api',
      tag: 'Models',
      summary: 'Create embeddings',
      description: `One vector per text, in order, all of the same length. Requests with more texts than the upstream
accepts are split. A field that is null counts as absent; unknown fields are ignored.`,
      body: jsonBody(embeddingBody, {
        example: { model: 'local-hash', input: ['One text.', 'Another.'] },
        read: readEmbeddingRequest,
      }),
      responses: {
        200: { description: 'The vectors.', content: json(embeddingList, exampleList) },
      },
      errors: {
        invalid_request: 'input is required.',
        model_mode_mismatch: 'The model "llama-3.3-70b" has mode generate; mode embed is required.',
        model_not_found: 'The model "bge-m4" does not exist.',
        rate_limit_exceeded:
          'The upstream returned status 429, or too many calls of the key wait for the model.',
        queue_full: 'Too many calls wait for the model.',
        queue_timeout: 'All upstreams of the model were busy for 60 s.',
        upstream_overloaded: 'The upstream returned status 503.',
        upstream_invalid_answer: 'The embedding upstream returned vectors of different lengths.',
        upstream_unreachable: 'The upstream could not be reached.',
        upstream_first_event_timeout: 'The upstream sent no output within 300 s.',
      },
      async handle({ body, context, set }): Promise<EmbeddingList> {
        const embedder = await embedders.find(body.model, context.principal)
        const list = await embedTexts(embedder, body, { context, limits: config.limits })
        const rateLimits = limits.rateLimits(context.principal, embedder.model)
        setRateLimitHeaders(set.headers, rateLimits, 'responses')
        return list
      },
    }),
  ]
}

/** Answers a line of a batch. */
export function embeddingLines({
  embedders,
  config,
}: Pick<EmbeddingEndpointsDeps, 'embedders' | 'config'>): AnswerLine {
  return async (given, { context }) => {
    const body = readEmbeddingRequest(given)
    const embedder = await embedders.find(body.model, context.principal)
    return embedTexts(embedder, body, { context, limits: config.limits })
  }
}

async function embedTexts(
  embedder: Embedder,
  body: EmbeddingRequest,
  { context, limits }: { context: RequestContext; limits: Config['limits'] },
): Promise<EmbeddingList> {
  const { model, dimensions, encoding_format } = body
  const texts = await readTexts(body, limits)
  const { vectors, inputTokens } = await embedder.embed(texts, {
    purpose: 'passage',
    context,
    ...(dimensions === undefined ? {} : { dims: dimensions }),
  })
  const encode = encoding_format === 'base64' ? toBase64 : toNumbers
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: encode(vector),
    })),
    model,
    usage: { prompt_tokens: inputTokens ?? 0, total_tokens: inputTokens ?? 0 },
  }
}

function toNumbers(vector: Float32Array): number[] {
  return [...vector]
}

function toBase64({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
}

const exampleList: EmbeddingList = {
  object: 'list',
  data: [
    { object: 'embedding', index: 0, embedding: [0.0231, -0.1187, 0.0452] },
    { object: 'embedding', index: 1, embedding: [-0.0077, 0.0904, 0.1313] },
  ],
  model: 'local-hash',
  usage: { prompt_tokens: 9, total_tokens: 9 },
}
