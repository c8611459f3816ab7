import type { Config } from '#config/schema.ts'
import type { RetrievalSettings } from '#retrieval/settings.ts'
import type { Settings } from './settings.ts'

/** What retrieval asks before each search. */
export function retrievalSettings({ current }: Pick<Settings, 'current'>): RetrievalSettings {
  return () => {
    const { retrieval_k, rerank_top_n, reranker_model, embedding_model } = current()
    return {
      retrievalK: retrieval_k,
      rerankTopN: rerank_top_n,
      rerankModel: reranker_model,
      embeddingModel: embedding_model,
    }
  }
}

/**
 * The configuration in which what administrators set is looked up at each read. Who takes one of
 * these numbers out, or spreads their section, has it as it was at that moment.
 */
export function withSettings(config: Config, { current }: Pick<Settings, 'current'>): Config {
  return {
    ...config,
    files: {
      ...config.files,
      get bytesMax() {
        return current().files.max_bytes
      },
      get trashS() {
        return current().files.trash_seconds
      },
      get peoplePicker() {
        return current().files.people_picker
      },
    },
    responses: {
      ...config.responses,
      get ttlS() {
        return current().responses.ttl_seconds
      },
    },
  }
}
