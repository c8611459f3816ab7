import { Type } from '@sinclair/typebox'
import { compileChecker } from '#lib/schema.ts'
import { refused } from '#lib/unprocessable.ts'
import { checkChunking } from '#retrieval/collections/schema.ts'
import { readBody } from '#retrieval/read-body.ts'
import { type ReindexStatus, type ReindexWish, reindexStatuses } from './reindex.ts'

/** The wire shapes of `/v1/embeddings/reindex`. */

const nameCharsMax = 256
const collectionsMax = 1_000

const strict = { additionalProperties: false }
const name = Type.String({ minLength: 1, maxLength: nameCharsMax })

const checker = compileChecker(
  Type.Object(
    {
      embedding_model: name,
      chunking: Type.Optional(
        Type.Object({ max_tokens: Type.Integer(), overlap_tokens: Type.Integer() }, strict),
      ),
      collections: Type.Optional(
        Type.Union([
          Type.Literal('all'),
          Type.Array(name, { minItems: 1, maxItems: collectionsMax }),
        ]),
      ),
      dry_run: Type.Optional(Type.Boolean()),
    },
    strict,
  ),
)

/** These read what is sent; what is wrong with it throws an `AppError` of status 422. */

export function readReindex(body: unknown): { wish: ReindexWish; isDryRun: boolean } {
  const { embedding_model: embeddingModel, chunking, ...rest } = readBody(checker, body)
  const { collections = 'all', dry_run: isDryRun = false } = rest
  return {
    wish: {
      embeddingModel,
      chunking:
        chunking === undefined
          ? null
          : checkChunking(
              { tokensMax: chunking.max_tokens, overlapTokens: chunking.overlap_tokens },
              ['chunking.max_tokens', 'chunking.overlap_tokens'],
            ),
      collections: collections === 'all' ? null : collections,
    },
    isDryRun,
  }
}

export function readStatus(
  query: Readonly<Record<string, string | undefined>>,
): ReindexStatus | null {
  const { status } = query
  if (status === undefined) return null
  const known = reindexStatuses.find((one) => one === status)
  if (known !== undefined) return known
  throw refused('status', `"status" must be one of ${reindexStatuses.join(', ')}.`)
}
