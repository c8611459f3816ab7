import type { UpstreamModel } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { createLru } from '#lib/lru.ts'
import { type GgufHead, isGenerative, readGgufHead } from './gguf.ts'
import { fileState, type LocalModel } from './local-model.ts'
import type { Wanted } from './model-entry.ts'

/** The files of models on this machine, as they are at each question. */
export type ModelFiles = {
  /** Throws `model_not_found`, or `upstream_refused` for a file that is no model. */
  find(name: string): Promise<Wanted>
  /** What the model list says of models; nothing of those that say no words. */
  describe(models: readonly LocalModel[]): Promise<readonly UpstreamModel[]>
}

export type ModelFilesDeps = {
  models: () => Promise<readonly LocalModel[]>
  contextTokensMax: number
  /** The context of a model that is in memory. */
  loadedContextTokens: (name: string) => number | null
}

/** Heads of files that are remembered. */
const headsMax = 1_000

export function createModelFiles(deps: ModelFilesDeps): ModelFiles {
  const { models, contextTokensMax, loadedContextTokens } = deps
  const heads = createLru<string, GgufHead | null>(headsMax)

  const headOf = async (path: string, key: string): Promise<GgufHead | null> => {
    const known = heads.get(key)
    if (known !== undefined) return known
    const head = await readGgufHead(path).catch(() => null)
    heads.set(key, head)
    return head
  }
  const describeOne = async ({ name, path }: LocalModel): Promise<readonly UpstreamModel[]> => {
    const state = await fileState(path)
    const head = state === null ? null : await headOf(path, state.key)
    if (state === null || head === null || !isGenerative(head)) return []
    const trained = head.contextTokens ?? contextTokensMax
    return [
      {
        id: name,
        created: state.modifiedS,
        ownedBy: null,
        contextWindow: loadedContextTokens(name) ?? Math.min(trained, contextTokensMax),
        capabilities: ['tools', 'json'],
      },
    ]
  }
  return {
    async find(name) {
      const model = (await models()).find((each) => each.name === name)
      const state = model === undefined ? null : await fileState(model.path)
      if (model === undefined || state === null) {
        throw new AppError('model_not_found', `There is no model ${name} on this machine.`, {
          param: 'model',
        })
      }
      // What loads models may wait for ever at a file of another kind.
      if ((await headOf(model.path, state.key)) === null) {
        throw new AppError('upstream_refused', 'The file of the model is no GGUF file.')
      }
      return { model, key: state.key }
    },
    describe: async (installed) => (await Promise.all(installed.map(describeOne))).flat(),
  }
}
