import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import { createRequestContext } from '#lib/request-context.ts'
import type { Embedders } from './embedder.ts'
import { embedOperation } from './operations.ts'
import { readEmbeddingRequest } from './read-request.ts'
import type { EmbeddingList } from './schema.ts'

export type EmbeddingRoutesDeps = {
  auth: Auth
  embedders: Embedders
  config: Pick<Config, 'limits'>
}

/** `POST /v1/embeddings`, as OpenAI's. */
export function embeddingRoutes({ auth, embedders, config }: EmbeddingRoutesDeps) {
  return new Elysia({ name: 'embeddings', prefix: '/v1/embeddings' }).use(guard(auth)).post(
    '/',
    async ({ request, principal, set }): Promise<EmbeddingList> => {
      const body = await readJsonBody(request, config.limits)
      const { model, texts, dimensions, encoding_format } = readEmbeddingRequest(
        body,
        config.limits,
      )
      const embedder = await embedders.find(model)
      const { vectors, inputTokens } = await embedder.embed(texts, {
        purpose: 'passage',
        context: createRequestContext({
          requestId: requestIdOf(set),
          principal,
          signal: request.signal,
        }),
        ...(dimensions === undefined ? {} : { dims: dimensions }),
      })
      const spell = encoding_format === 'base64' ? toBase64 : toNumbers
      return {
        object: 'list',
        data: vectors.map((vector, index) => ({
          object: 'embedding',
          index,
          embedding: spell(vector),
        })),
        model,
        usage: { prompt_tokens: inputTokens ?? 0, total_tokens: inputTokens ?? 0 },
      }
    },
    {
      requires: 'can_access_api',
      parse: 'none',
      detail: embedOperation,
    },
  )
}

function toNumbers(vector: Float32Array): number[] {
  return [...vector]
}

function toBase64({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
}
