import { Type } from '@sinclair/typebox'
import { section, text, whole } from './keys.ts'

/** The keys about files and what is found in them. */
export const retrievalKeys = {
  files: section('Files and folders.', {
    bytesMax: whole('The longest file.', {
      default: 5_368_709_120,
      minimum: 1,
      maximum: 5_497_558_138_880,
      env: 'SLUICE_FILE_BYTES_MAX',
    }),
    perOwnerMax: whole('Files and folders in the tree of one user.', {
      default: 1_000_000,
      minimum: 1,
    }),
    uploadMs: whole('How long one upload may take.', { default: 3_600_000, minimum: 1_000 }),
    uploadGapMs: whole('How long an upload may send nothing.', { default: 30_000, minimum: 100 }),
    uploadsMax: whole('Uploads at once in one worker.', { default: 64, minimum: 1 }),
    trashS: whole('How long what was deleted can be restored.', {
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
  s3: section('Where files are kept; without a bucket, in the data folder.', {
    endpoint: Type.Optional(text('The server: https://…', { env: 'S3_ENDPOINT' })),
    bucket: Type.Optional(text('The bucket.', { env: 'S3_BUCKET' })),
    accessKeyId: Type.Optional(text('Its key.', { env: 'S3_ACCESS_KEY_ID', secret: true })),
    secretAccessKey: Type.Optional(
      text('The secret of its key.', { env: 'S3_SECRET_ACCESS_KEY', secret: true }),
    ),
    region: text('The region.', { default: 'us-east-1', env: 'S3_REGION' }),
    prefix: Type.String({ description: 'Before the name of each object.', default: '' }),
  }),
  retrieval: section('What is found in files, and what a model is given of it.', {
    k: Type.Integer({
      description: 'Passages that a model is given.',
      default: 3,
      minimum: 1,
      maximum: 50,
      env: 'SLUICE_RETRIEVAL_K',
    }),
    rerankTopN: Type.Optional(
      Type.Integer({
        description: 'At most so many passages come out of the reranker.',
        minimum: 1,
        maximum: 50,
        env: 'SLUICE_RERANK_TOP_N',
      }),
    ),
    rerankModel: Type.Optional(
      text('The model of mode rerank that orders what was found.', { env: 'SLUICE_RERANK_MODEL' }),
    ),
    embeddingModel: text('The model of new collections; local-hash is built in.', {
      default: 'local-hash',
      env: 'SLUICE_EMBEDDING_MODEL',
    }),
    chunkTokensMax: Type.Integer({
      description: 'The longest passage of new collections.',
      default: 800,
      minimum: 100,
      maximum: 4_096,
    }),
    chunkOverlapTokens: Type.Integer({
      description: 'What neighbouring passages have in common; half of a passage at most.',
      default: 100,
      minimum: 0,
      maximum: 2_048,
    }),
    collectionFilesMax: whole('Files in one collection.', { default: 1_000_000, minimum: 1 }),
    textCharsMax: whole('The most text that is taken from one file.', {
      default: 20_000_000,
      minimum: 1_000,
    }),
    extractMs: whole('How long reading one file may take.', { default: 120_000, minimum: 100 }),
    extractMemoryBytesMax: whole(
      'The most memory that reading one file may take; 300 MB of it are taken before it begins.',
      { default: 629_145_600, minimum: 402_653_184 },
    ),
    extractionsMax: whole('Files that are read at once in one worker.', {
      default: 2,
      minimum: 1,
    }),
    warmHours: whole('How long the index before a reindex is kept to go back to.', {
      default: 24,
      minimum: 0,
    }),
  }),
}
