import { Type } from '@sinclair/typebox'
import { reloading, section, text, whole } from '#config/keys.ts'

/** The keys of retrieval. */
export const retrievalKeys = {
  retrieval: section('Extraction, indexing and search of files.', {
    k: reloading(
      Type.Integer({
        description: 'Passages passed to the model.',
        default: 3,
        minimum: 1,
        maximum: 50,
        env: 'SLUICE_RETRIEVAL_K',
      }),
    ),
    rerankTopN: reloading(
      Type.Optional(
        Type.Integer({
          description: 'Maximum passages returned by the reranker.',
          minimum: 1,
          maximum: 50,
          env: 'SLUICE_RERANK_TOP_N',
        }),
      ),
    ),
    rerankerModel: reloading(
      Type.Optional(
        text('Model with mode = "rerank" that reorders search results.', {
          env: 'SLUICE_RERANKER_MODEL',
          former: { key: 'rerankModel', env: 'SLUICE_RERANK_MODEL' },
        }),
      ),
    ),
    embeddingModel: reloading(
      text(
        'Embedding model of new collections. local: the model that `bun run embed:install` installed last, or the built-in local-hash while there is none.',
        {
          default: 'local',
          env: 'SLUICE_EMBEDDING_MODEL',
        },
      ),
    ),
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
    ocrLanguages: text(
      'Languages of scanned pages, as Tesseract names them: eng+deu. Their data must be installed with it.',
      { default: 'eng' },
    ),
    ocrPagesMax: whole(
      'Scanned pages per file whose text is recognized, where Tesseract is installed; 0: none.',
      { default: 50, minimum: 0 },
    ),
    warmHours: whole(
      'How long the previous index is kept after a reindex, so that it can be reverted.',
      {
        default: 24,
        minimum: 0,
      },
    ),
  }),
}
