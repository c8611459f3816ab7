import type { Embedder } from '#embedding/embedder.ts'
import { AppError } from '#lib/errors.ts'
import type { ReindexWorld } from './reindex-world.ts'

/** A passage of a file; what a model is tried with at the start is none. */
type Passage = { readonly text: string }

const probed = 'andrel'

/** Lets no passage through that is held, until it is opened. */
export function gateModel(
  world: ReindexWorld,
  model: string,
  isHeld: (passage: Passage) => boolean = () => true,
): { open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  changePassages(world, model, async (text, signal) => {
    if (!isHeld({ text })) return
    const { promise: left, resolve: leave } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => leave(), { once: true })
    if (!signal.aborted) await Promise.race([promise, left])
  })
  return { open: resolve }
}

/** Fails for passages as long as this says with what. */
export function breakModel(
  world: ReindexWorld,
  model: string,
  failureOf: (passage: Passage) => AppError | null,
): void {
  changePassages(world, model, async (text) => {
    const failure = failureOf({ text })
    if (failure !== null) throw failure
  })
}

/** Takes away whatever was put around a model. */
export function mendModel(world: ReindexWorld, model: string): void {
  const plain = changed.get(world.embedders.get(model) ?? neverChanged)
  if (plain !== undefined) world.embedders.set(model, plain)
}

/** By what was put around them. */
const changed = new WeakMap<object, Embedder>()
const neverChanged = {}

/** What another try does not mend. */
export function refusal(): AppError {
  return new AppError('invalid_request', 'The model does not take this text.')
}

/** Puts something before each passage that a model is given. */
export function changePassages(
  world: ReindexWorld,
  model: string,
  before: (text: string, signal: AbortSignal) => Promise<void>,
): void {
  mendModel(world, model)
  const plain = world.embedders.get(model)
  if (plain === undefined) throw new Error(`there is no model ${model}`)
  const around: Embedder = {
    model,
    async embed(texts, options) {
      const isOfFile = options.purpose === 'passage' && !texts.some((text) => text.includes(probed))
      if (isOfFile) for (const text of texts) await before(text, options.context.signal)
      options.context.signal.throwIfAborted()
      return plain.embed(texts, options)
    },
  }
  changed.set(around, plain)
  world.embedders.set(model, around)
}
