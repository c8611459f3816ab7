import type { Embedders } from '#embedding/embedder.ts'
import type { Files } from '#files/tree.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import type { Rerankers } from '#rerank/reranker.ts'
import type { Flat } from './flat.ts'
import { documentNotFound, documentsKey } from './patch.ts'
import type { Standing } from './settings.ts'

/** What values are held against that name something. */
export type SettingChecks = {
  embedders: Pick<Embedders, 'find'>
  rerankers: Pick<Rerankers, 'find'>
  files: Pick<Files, 'readable'>
}

/**
 * Whether what the values name is there, and is what it must be. Throws `unprocessable` of code
 * `model_not_found`, `model_mode_mismatch` or `document_not_found`, and `service_unavailable` where
 * nobody can tell.
 */
export async function checkNames(
  { embedders, rerankers, files }: SettingChecks,
  caller: RequestPrincipal,
  values: Flat,
): Promise<void> {
  await checkModel('embedding_model', values, embedders.find)
  await checkModel('reranker_model', values, rerankers.find)
  const ids: unknown = values.get(documentsKey)
  if (!Array.isArray(ids) || ids.length === 0) return
  const readable = await files.readable(caller, ids)
  const missing = ids.findIndex((id) => !readable.has(id))
  if (missing !== -1) throw documentNotFound(ids[missing], missing)
}

async function checkModel(
  key: string,
  values: Flat,
  find: (name: string) => Promise<unknown>,
): Promise<void> {
  const name = values.get(key)
  if (typeof name !== 'string') return
  try {
    await find(name)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (error.kind !== 'model_not_found' && error.kind !== 'model_mode_mismatch') throw error
    throw refused(key, error.message, error.kind)
  }
}

/** That `rerank_top_n` has a reranker, as far as it is this change that would take care of it. */
export function demandReranker({ values }: Pick<Standing, 'values'>, patch: Flat): void {
  const { rerank_top_n: topN, reranker_model: model } = values
  if (topN === null || model !== null) return
  if (typeof patch.get('rerank_top_n') === 'number') {
    throw refused(
      'rerank_top_n',
      '"rerank_top_n" needs a reranker; set "reranker_model" as well.',
      'reranker_not_configured',
    )
  }
  if (!patch.has('reranker_model')) return
  throw new AppError(
    'conflict',
    `"rerank_top_n" is ${topN} and needs the reranker; set it to null as well.`,
    { code: 'reranker_in_use', param: 'reranker_model' },
  )
}
