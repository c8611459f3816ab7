import { actorOf } from '#audit/audit.ts'
import type { Audit } from '#audit/store.ts'
import type { Transaction } from '#db/client.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Files } from '#files/tree.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext, RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import type { Rerankers } from '#rerank/reranker.ts'
import { applyPatch, documentNotFound, type Flat, parseValue, patchBetween } from './patch.ts'
import { type ConfigValues, type ReferenceKind, settingsByKey } from './schema.ts'
import type { Settings, SettingsState } from './settings.ts'

type EditOptions = { readonly isExpected: IsExpected; readonly isDryRun: boolean }

export type Edited = {
  readonly before: SettingsState
  readonly after: SettingsState
  readonly warnings: Warning[]
}

/** Finds the resources that settings refer to. */
export type SettingReferences = {
  embedders: Pick<Embedders, 'find'>
  rerankers: Pick<Rerankers, 'find'>
  files: Pick<Files, 'readable'>
  modelResolver: {
    agentModelName(name: string, principal: RequestPrincipal): string | undefined
  }
}

/** Follows changes of `service_desk`. */
type ServiceDesk = {
  prepare(context: RequestContext): Promise<void>
  apply(
    transaction: Transaction,
    principal: RequestPrincipal,
    values: ConfigValues['service_desk'],
  ): Promise<void>
}

/**
 * Changes by administrators. They throw `unprocessable`, `unknown_field` or `removed_field` for invalid
 * values, `conflict` for locked keys, and `precondition_failed` for a stale `If-Match`.
 */
export function createEditing(
  settings: Settings,
  {
    serviceDesk,
    audit,
    ...references
  }: SettingReferences & { serviceDesk: ServiceDesk; audit: Pick<Audit, 'record'> },
) {
  const present = () => settings.current().service_desk.document_ids ?? []
  const prepare = async (context: RequestContext, values: Flat, { isDryRun }: EditOptions) => {
    if (isDryRun || !values.get('service_desk.document_ids')) return
    await serviceDesk.prepare(context)
  }
  const follow =
    (context: RequestContext, action: 'update' | 'rollback') =>
    async (transaction: Transaction, { before, after }: Omit<Edited, 'warnings'>) => {
      const { service_desk: desk } = after.values
      if (!Bun.deepEquals(before.values.service_desk, desk)) {
        await serviceDesk.apply(transaction, context.principal, desk)
      }
      const keys = [...patchBetween(before.overrides, after.overrides).keys()]
      const entry = {
        actor: actorOf(context),
        action: `config.${action}`,
        resource: { type: 'config', id: 'config' },
        changes: { before: effective(before, keys), after: effective(after, keys) },
      }
      await audit.record(entry, transaction)
    }
  /** Settings that only another release knows have the value that is stored. */
  const effective = ({ overrides }: SettingsState, keys: readonly string[]) => {
    const values = new Map([...overrides, ...settings.layers.flat(overrides)])
    return Object.fromEntries(keys.map((key) => [key, values.get(key) ?? null]))
  }
  return {
    async patch(context: RequestContext, patch: Flat, options: EditOptions): Promise<Edited> {
      const { principal } = context
      const { layers } = settings
      layers.requireUnlocked(patch.keys())
      await requireReferences({ ...references, present }, principal, patch)
      await prepare(context, patch, options)
      const actor = { actorId: principal.userId, ...options }
      const changed = await settings.change(
        actor,
        ({ overrides }) => {
          const patched = applyPatch(overrides, patch, {
            keepsNull: layers.isSwitchedOffByNull,
            inEffect: layers.flat(overrides),
          })
          requireReranker(layers.effective(patched), patch)
          return patched
        },
        follow(context, 'update'),
      )
      return { ...changed, warnings: warningsOf(changed) }
    },

    /** Restores the overrides after the change `revision`, validated by the rules of this release. */
    async rollBack(
      context: RequestContext,
      revision: number,
      options: EditOptions,
    ): Promise<Edited> {
      const overrides = await settings.overridesAfter(revision)
      const { layers } = settings
      if (overrides === undefined) {
        const sentence = `There is no revision ${revision}; see the history.`
        throw refused('revision', sentence, 'revision_not_found')
      }
      // Keys that this release does not know are kept.
      const target = new Map(
        [...overrides].map(([key, value]) => [
          key,
          settingsByKey.has(key) ? parseValue(key, value) : value,
        ]),
      )
      const unlocked = [...target].filter(([key]) => layers.lockOf(key) === null)
      const { principal } = context
      await requireReferences({ ...references, present }, principal, new Map(unlocked))
      await prepare(context, target, options)
      let patch: Flat = new Map()
      const actor = { actorId: principal.userId, ...options }
      const changed = await settings.change(
        actor,
        (state) => {
          patch = patchBetween(state.overrides, target)
          layers.requireUnlocked(patch.keys())
          requireReranker(layers.effective(target), patch)
          return target
        },
        follow(context, 'rollback'),
      )
      return { ...changed, warnings: warningsOf(changed) }
    },
  }
}

/**
 * Throws `unprocessable` of code `model_not_found`, `model_mode_mismatch` or `document_not_found`, and
 * `service_unavailable` if a reference cannot be checked.
 */
async function requireReferences(
  {
    embedders,
    rerankers,
    files,
    modelResolver,
    present,
  }: SettingReferences & { present(): readonly string[] },
  principal: RequestPrincipal,
  values: Flat,
): Promise<void> {
  const check: Record<ReferenceKind, (key: string, value: unknown) => Promise<void>> = {
    async 'generation model'(key, name) {
      if (typeof name !== 'string' || modelResolver.agentModelName(name, principal) !== undefined)
        return
      const message = `There is no model "${name}" that generates text.`
      throw refused(key, message, 'model_not_found')
    },
    'embedding model': (key, name) =>
      requireModel(key, name, (model) => embedders.find(model, principal)),
    'rerank model': (key, name) =>
      requireModel(key, name, (model) => rerankers.find(model, principal)),
    async files(key, ids) {
      if (!Array.isArray(ids) || ids.length === 0) return
      // Documents of other administrators stay when the list is sent again.
      const readable = (await files.readable(principal, ids)).union(new Set(present()))
      const missing = ids.findIndex((id) => !readable.has(id))
      if (missing !== -1) throw documentNotFound(key, ids, missing)
    },
  }
  for (const { key, reference } of settingsByKey.values()) {
    if (reference !== null) await check[reference](key, values.get(key))
  }
}

async function requireModel(
  key: string,
  name: unknown,
  find: (name: string) => Promise<unknown>,
): Promise<void> {
  if (typeof name !== 'string') return
  try {
    await find(name)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (error.kind !== 'model_not_found' && error.kind !== 'model_mode_mismatch') throw error
    throw refused(key, error.message, error.kind)
  }
}

/** `rerank_top_n` requires a reranker. Reports the key of this patch that breaks the rule. */
function requireReranker(values: ConfigValues, patch: Flat): void {
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

/** A valid change that may not be intended. */
type Warning = { readonly code: string; readonly param: string; readonly message: string }

function warningsOf({
  before: { values: before },
  after: { values: after },
}: Omit<Edited, 'warnings'>): Warning[] {
  const warnings: Warning[] = []
  const { rerank_top_n: topN, retrieval_k: k } = after
  if (topN !== null && topN > k) {
    warnings.push({
      code: 'rerank_top_n_above_retrieval_k',
      param: 'rerank_top_n',
      message: `A model gets at most ${k} passages ("retrieval_k"), even if the reranker returns more.`,
    })
  }
  if (before.embedding_model !== after.embedding_model) {
    warnings.push({
      code: 'embedding_model_of_new_collections',
      param: 'embedding_model',
      message: 'Existing collections keep their model until they are reindexed.',
    })
  }
  if (before.files.trash_seconds > after.files.trash_seconds) {
    warnings.push({
      code: 'trash_emptied',
      param: 'files.trash_seconds',
      message: 'Older files in the trash are deleted permanently.',
    })
  }
  return warnings
}
