import type { Embedder } from '#embedding/embedder.ts'
import { AppError } from '#lib/errors.ts'
import type { ReindexHarness } from './reindex-harness.ts'

/** A passage of a file, as opposed to texts of the probe. */
type Passage = { readonly text: string }

const probed = 'andrel'

/** Blocks the selected passages until it is opened. */
export function gateModel(
  harness: ReindexHarness,
  model: string,
  isHeld: (passage: Passage) => boolean = () => true,
): { open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  interceptPassages(harness, model, async (text, signal) => {
    if (!isHeld({ text })) return
    const { promise: left, resolve: leave } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => leave(), { once: true })
    if (!signal.aborted) await Promise.race([promise, left])
  })
  return { open: resolve }
}

/** Fails for the passages that `failure` returns an error for. */
export function breakModel(
  harness: ReindexHarness,
  model: string,
  failureOf: (passage: Passage) => AppError | null,
): void {
  interceptPassages(harness, model, async (text) => {
    const failure = failureOf({ text })
    if (failure !== null) throw failure
  })
}

/** Removes all wrappers of a model. */
export function restoreModel(harness: ReindexHarness, model: string): void {
  const plain = changed.get(harness.embedders.get(model) ?? neverChanged)
  if (plain !== undefined) harness.embedders.set(model, plain)
}

/** The original models by wrapper. */
const changed = new WeakMap<object, Embedder>()
const neverChanged = {}

/** A permanent error. */
export function refusal(): AppError {
  return new AppError('invalid_request', 'The model does not take this text.')
}

/** Runs a function before each passage is embedded. */
export function interceptPassages(
  harness: ReindexHarness,
  model: string,
  before: (text: string, signal: AbortSignal) => Promise<void>,
): void {
  restoreModel(harness, model)
  const plain = harness.embedders.get(model)
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
  harness.embedders.set(model, around)
}
