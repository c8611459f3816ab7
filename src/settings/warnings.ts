import { type Flat, flatten } from './flat.ts'
import type { ConfigValues } from './schema.ts'

/** What is allowed, and perhaps not meant. */
export type Warning = { readonly code: string; readonly param: string; readonly message: string }

type Change = { readonly before: ConfigValues; readonly after: ConfigValues; readonly patch: Flat }

export function warningsOf(change: Change): readonly Warning[] {
  return [...rerankWarnings(change), ...reachWarnings(change), ...resetWarnings(change)]
}

function* rerankWarnings({ after }: Change): Generator<Warning> {
  const { rerank_top_n: topN, retrieval_k: k } = after
  if (topN === null || topN <= k) return
  yield {
    code: 'rerank_top_n_above_retrieval_k',
    param: 'rerank_top_n',
    message: `A model is given ${k} passages ("retrieval_k"), however many the reranker returns.`,
  }
}

function* reachWarnings({ before, after }: Change): Generator<Warning> {
  if (before.embedding_model !== after.embedding_model) {
    yield {
      code: 'embedding_model_of_new_collections',
      param: 'embedding_model',
      message: 'Collections that exist keep their model until they are reindexed.',
    }
  }
  if (before.files.trash_seconds > after.files.trash_seconds) {
    yield {
      code: 'trash_emptied',
      param: 'files.trash_seconds',
      message: 'What has been in the trash for longer is deleted for ever.',
    }
  }
}

/** Null does not mean none where the configuration file has a value. */
function* resetWarnings({ after, patch }: Change): Generator<Warning> {
  const values = flatten(after)
  for (const key of ['rerank_top_n', 'reranker_model']) {
    const value = values.get(key)
    if (patch.get(key) !== null || value === null) continue
    yield {
      code: 'value_of_configuration',
      param: key,
      message: `"${key}" is ${JSON.stringify(value)} by the configuration file.`,
    }
  }
}
