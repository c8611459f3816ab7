import { Type } from '@sinclair/typebox'
import { section, text, whole } from './keys.ts'

/** The keys of files and retrieval. */
export const retrievalKeys = {
  files: section('Files and folders.', {
    bytesMax: whole('Maximum file size.', {
      default: 5_368_709_120,
      minimum: 1,
      maximum: 5_497_558_138_880,
      env: 'SLUICE_FILE_BYTES_MAX',
    }),
    perOwnerMax: whole('Maximum files and folders per user.', {
      default: 1_000_000,
      minimum: 1,
    }),
    uploadMs: whole('Timeout of an upload.', { default: 3_600_000, minimum: 1_000 }),
    uploadGapMs: whole('Time without data after which an upload is aborted.', {
      default: 30_000,
      minimum: 100,
    }),
    uploadsMax: whole('Concurrent uploads per worker.', { default: 64, minimum: 1 }),
    trashS: whole('How long deleted files can be restored.', {
      default: 2_592_000,
      minimum: 0,
      maximum: 315_360_000,
      env: 'SLUICE_FILE_TRASH_S',
    }),
    peoplePicker: Type.Boolean({
      description: 'Whether callers may search for users and groups to share with.',
      default: true,
    }),
  }),
  s3: section('Object storage for files. Without a bucket, files are kept in the data folder.', {
    endpoint: Type.Optional(text('Server URL: https://…', { env: 'S3_ENDPOINT' })),
    bucket: Type.Optional(text('Bucket.', { env: 'S3_BUCKET' })),
    accessKeyId: Type.Optional(text('Access key id.', { env: 'S3_ACCESS_KEY_ID', secret: true })),
    secretAccessKey: Type.Optional(
      text('Secret access key.', { env: 'S3_SECRET_ACCESS_KEY', secret: true }),
    ),
    region: text('Region.', { default: 'us-east-1', env: 'S3_REGION' }),
    prefix: Type.String({ description: 'Prefix of object names.', default: '' }),
  }),
  retrieval: section('Extraction, indexing and search of files.', {
    k: Type.Integer({
      description: 'Passages passed to the model.',
      default: 3,
      minimum: 1,
      maximum: 50,
      env: 'SLUICE_RETRIEVAL_K',
    }),
    rerankTopN: Type.Optional(
      Type.Integer({
        description: 'Maximum passages returned by the reranker.',
        minimum: 1,
        maximum: 50,
        env: 'SLUICE_RERANK_TOP_N',
      }),
    ),
    rerankModel: Type.Optional(
      text('Model with mode = "rerank" that reorders search results.', {
        env: 'SLUICE_RERANK_MODEL',
      }),
    ),
    embeddingModel: text('Embedding model of new collections; local-hash is built in.', {
      default: 'local-hash',
      env: 'SLUICE_EMBEDDING_MODEL',
    }),
    chunkTokensMax: Type.Integer({
      description: 'Maximum passage length of new collections.',
      default: 800,
      minimum: 100,
      maximum: 4_096,
    }),
    chunkOverlapTokens: Type.Integer({
      description: 'Overlap of adjacent passages; at most half a passage.',
      default: 100,
      minimum: 0,
      maximum: 2_048,
    }),
    collectionFilesMax: whole('Maximum files per collection.', { default: 1_000_000, minimum: 1 }),
    textCharsMax: whole('Maximum text extracted from a file.', {
      default: 20_000_000,
      minimum: 1_000,
    }),
    extractMs: whole('Timeout of the extraction of a file.', { default: 120_000, minimum: 100 }),
    extractMemoryBytesMax: whole(
      'Memory limit of the extraction of a file, including 300 MB for the process itself.',
      { default: 629_145_600, minimum: 402_653_184 },
    ),
    extractionsMax: whole('Concurrent extractions per worker.', {
      default: 2,
      minimum: 1,
    }),
    warmHours: whole(
      'How long the previous index is kept after a reindex, so that it can be reverted.',
      {
        default: 24,
        minimum: 0,
      },
    ),
  }),
}
