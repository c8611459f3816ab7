import { fileState, type LocalModel, type ModelFile } from '#inference/local-models/local-model.ts'
import type { UpstreamModel } from '#inference/upstream.ts'
import { AppError } from '#lib/errors.ts'
import { createLru } from '#lib/lru.ts'
import { type GgufHead, isGenerative, readGgufHead } from './gguf.ts'

/** The most file heads that are cached. */
const headsMax = 1_000

/** The heads of the model files on this machine; each call reads the current state of the files. */
export class ModelFiles {
  readonly #heads = createLru<string, GgufHead | null>(headsMax)

  /** Throws `model_not_found`, or `upstream_refused` for a file that is not a model. */
  async find(models: readonly LocalModel[], name: string): Promise<ModelFile> {
    const model = models.find((each) => each.name === name)
    const state = model === undefined ? null : await fileState(model.path)
    if (model === undefined || state === null) {
      throw new AppError('model_not_found', `No such model on this machine: ${name}.`, {
        param: 'model',
      })
    }
    // The loader may hang on a file of another format.
    if ((await this.#readHead(model.path, state.key)) === null) {
      throw new AppError('upstream_refused', 'The model file is not a GGUF file.')
    }
    return { model, key: state.key }
  }

  /** The entry of the model list; null for a model that does not generate text. */
  async describe(
    { name, path }: LocalModel,
    context: { loadedTokens: number | null; tokensMax: number },
  ): Promise<UpstreamModel | null> {
    const state = await fileState(path)
    const head = state === null ? null : await this.#readHead(path, state.key)
    if (state === null || head === null || !isGenerative(head)) return null
    const { loadedTokens, tokensMax } = context
    return {
      id: name,
      created: state.modifiedS,
      ownedBy: null,
      contextWindow: loadedTokens ?? Math.min(head.contextTokens ?? tokensMax, tokensMax),
      capabilities: ['tools', 'json'],
    }
  }

  async #readHead(path: string, key: string): Promise<GgufHead | null> {
    const known = this.#heads.get(key)
    if (known !== undefined) return known
    const head = await readGgufHead(path).catch(() => null)
    this.#heads.set(key, head)
    return head
  }
}
