import { type Static, Type } from '@sinclair/typebox'
import { nullable } from '#api/shapes.ts'
import { fileAttributes, fileStatus } from '#retrieval/collections/answer-schema.ts'

/** What `/v1/vector_stores` answers; times are seconds since 1970. */

const unixTime = (description: string) => Type.Integer({ description })

const counts = Type.Object({
  in_progress: Type.Integer(),
  completed: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer({ description: 'Always 0: nothing is cancelled.' }),
  total: Type.Integer(),
})
export type StoreCounts = Static<typeof counts>

const storeStatus = Type.Union([Type.Literal('in_progress'), Type.Literal('completed')])

export const vectorStore = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('vector_store'),
    created_at: unixTime('When it was made.'),
    name: Type.String(),
    collection: Type.String({ description: 'What it is named by elsewhere.' }),
    description: nullable(Type.String(), 'What it is about.'),
    usage_bytes: Type.Integer(),
    file_counts: counts,
    status: storeStatus,
    expires_at: Type.Null(),
    last_active_at: unixTime('When it was last changed.'),
    metadata: Type.Record(Type.String(), Type.String()),
  },
  { $id: 'VectorStore' },
)
export type VectorStore = Static<typeof vectorStore>

export const storedFile = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the file.' }),
    object: Type.Literal('vector_store.file'),
    created_at: unixTime('When it came into the store.'),
    vector_store_id: Type.String(),
    status: fileStatus,
    usage_bytes: Type.Integer(),
    last_error: nullable(
      Type.Object({
        code: Type.Union([
          Type.Literal('unsupported_file'),
          Type.Literal('server_error'),
          Type.Literal('invalid_file'),
        ]),
        message: Type.String(),
      }),
      'Why it cannot be found.',
    ),
    attributes: fileAttributes,
    chunking_strategy: Type.Object({
      type: Type.Literal('static'),
      static: Type.Object({
        max_chunk_size_tokens: Type.Integer(),
        chunk_overlap_tokens: Type.Integer(),
      }),
    }),
  },
  { $id: 'VectorStoreFile' },
)
export type StoredFile = Static<typeof storedFile>

export const fileBatch = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('vector_store.files_batch'),
    created_at: unixTime('When it was made.'),
    vector_store_id: Type.String(),
    status: storeStatus,
    file_counts: counts,
  },
  { $id: 'VectorStoreFileBatch' },
)
export type FileBatch = Static<typeof fileBatch>
