import { stat } from 'node:fs/promises'
import type { UpstreamModel } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { createLru } from '#lib/lru.ts'
import { type GgufHead, isGenerative, readGgufHead } from './gguf.ts'
import type { ModelFile } from './loaded-models.ts'
import type { LocalModel } from './local-model.ts'

/** The model files on this machine; each call reads their current state. */
export type ModelFiles = {
  /** Throws `model_not_found`, or `upstream_refused` for a file that is not a model. */
  find(name: string): Promise<ModelFile>
  /** The entries of the model list; models that do not generate text are skipped. */
  describe(models: readonly LocalModel[]): Promise<readonly UpstreamModel[]>
}

export type ModelFilesDeps = {
  models: () => Promise<readonly LocalModel[]>
  contextTokensMax: number
  /** The context size of a loaded model; null if it is not loaded. */
  loadedContextTokens: (name: string) => number | null
}

/** The most file heads that are cached. */
const headsMax = 1_000

export function createModelFiles(deps: ModelFilesDeps): ModelFiles {
  const { models, contextTokensMax, loadedContextTokens } = deps
  const heads = createLru<string, GgufHead | null>(headsMax)

  const readHead = async (path: string, key: string): Promise<GgufHead | null> => {
    const known = heads.get(key)
    if (known !== undefined) return known
    const head = await readGgufHead(path).catch(() => null)
    heads.set(key, head)
    return head
  }
  const describeOne = async ({ name, path }: LocalModel): Promise<readonly UpstreamModel[]> => {
    const state = await fileState(path)
    const head = state === null ? null : await readHead(path, state.key)
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
        throw new AppError('model_not_found', `No such model on this machine: ${name}.`, {
          param: 'model',
        })
      }
      // The loader may hang on a file of another format.
      if ((await readHead(model.path, state.key)) === null) {
        throw new AppError('upstream_refused', 'The model file is not a GGUF file.')
      }
      return { model, key: state.key }
    },
    describe: async (installed) => (await Promise.all(installed.map(describeOne))).flat(),
  }
}

/** The key changes when the file is replaced; null where there is no file. */
async function fileState(path: string): Promise<{ key: string; modifiedS: number } | null> {
  try {
    const { ino, size, mtimeMs } = await stat(path)
    return { key: `${path} ${ino} ${size} ${mtimeMs}`, modifiedS: Math.floor(mtimeMs / 1000) }
  } catch {
    return null
  }
}
