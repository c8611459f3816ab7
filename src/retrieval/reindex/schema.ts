import { Type } from '@sinclair/typebox'
import { chunkingShape, orderedPageQuery, readChunking } from '#retrieval/collections/schema.ts'
import { readBody } from '#retrieval/read-body.ts'
import { type ReindexParams, reindexStatuses } from './reindex.ts'

/** What `/v1/embeddings/reindex` accepts. */

const nameCharsMax = 256
const collectionsMax = 1_000

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
        { description: 'Names or ids of collections of one index.', default: 'all' },
      ),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ description: 'Only estimate the effort.', default: false }),
    ),
  },
  { additionalProperties: false },
)

export const reindexStatus = Type.Union(
  reindexStatuses.map((status) => Type.Literal(status)),
  { description: 'The state of the reindex.' },
)

export const reindexesQuery = Type.Object({
  ...orderedPageQuery.properties,
  status: Type.Optional(reindexStatus),
})

/** Throws an `AppError` of status 422. */
export function readReindex(body: unknown): { params: ReindexParams; isDryRun: boolean } {
  const fields = readBody(reindexBody, body)
  const { collections = 'all' } = fields
  return {
    params: {
      embeddingModel: fields.embedding_model,
      chunking: readChunking(fields.chunking),
      collections: collections === 'all' ? null : collections,
    },
    isDryRun: fields.dry_run ?? false,
  }
}
