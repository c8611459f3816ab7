import { Type } from '@sinclair/typebox'
import { compileChecker } from '#lib/schema.ts'
import { refused } from '#lib/unprocessable.ts'
import { chunkingShape, orderedPageQuery, readChunking } from '#retrieval/collections/schema.ts'
import { readBody } from '#retrieval/read-body.ts'
import { type ReindexStatus, type ReindexWish, reindexStatuses } from './reindex.ts'

/** The wire shapes of `/v1/embeddings/reindex`. */

const nameCharsMax = 256
const collectionsMax = 1_000

const strict = { additionalProperties: false }

export const reindexBody = Type.Object(
  {
    embedding_model: Type.String({
      description: 'The name of a model of mode `embed`.',
      minLength: 1,
      maxLength: nameCharsMax,
    }),
    chunking: Type.Optional(chunkingShape),
    collections: Type.Optional(
      Type.Union(
        [
          Type.Literal('all'),
          Type.Array(Type.String({ minLength: 1, maxLength: nameCharsMax }), {
            minItems: 1,
            maxItems: collectionsMax,
          }),
        ],
        { description: 'Names or ids, all of one index.', default: 'all' },
      ),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ description: 'Only tell what it would take.', default: false }),
    ),
  },
  strict,
)

export const reindexStatus = Type.Union(
  reindexStatuses.map((status) => Type.Literal(status)),
  { description: 'How far it has come.' },
)

export const reindexesQuery = Type.Object({
  ...orderedPageQuery.properties,
  status: Type.Optional(reindexStatus),
})

const checker = compileChecker(reindexBody)

/** These read what is sent; what is wrong with it throws an `AppError` of status 422. */

export function readReindex(body: unknown): { wish: ReindexWish; isDryRun: boolean } {
  const { embedding_model: embeddingModel, chunking, ...rest } = readBody(checker, body)
  const { collections = 'all', dry_run: isDryRun = false } = rest
  return {
    wish: {
      embeddingModel,
      chunking: readChunking(chunking),
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
