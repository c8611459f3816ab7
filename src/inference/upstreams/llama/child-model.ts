import { messageOf } from '#lib/error-message.ts'
import type { Binding, ChatWrapper, Llama, Model, Sequence, Token } from './binding.ts'
import type { LoadFault, LoadOptions } from './wire.ts'

/** A model in memory, with its contexts. */
export type LoadedModel = {
  readonly llama: Llama
  readonly model: Model
  readonly binding: Binding
  readonly chatWrapper: ChatWrapper
  /** The context size of each sequence. */
  readonly contextTokens: number
  /**
   * Returns the free sequence that shares the longest prefix with the prompt. There is always one: the
   * gateway starts no more generations than there are sequences.
   */
  acquireSequence(prompt: Token[]): Sequence
  releaseSequence(sequence: Sequence): void
}

export class ModelLoadError extends Error {
  readonly reason: LoadFault

  constructor(reason: LoadFault, cause: unknown) {
    super(messageOf(cause), { cause })
    this.reason = reason
  }
}

/**
 * Prompt tokens per batch. A batch cannot be cancelled, so it is smaller than the fastest size.
 */
export const batchTokens = 128

/** Throws `Unloadable`. */
export async function loadModel(options: LoadOptions): Promise<LoadedModel> {
  const { binding, llama } = await loadPackage(options).catch((error) => {
    throw new ModelLoadError('package', error)
  })
  try {
    const model = await llama.loadModel({ modelPath: options.modelPath })
    const context = await model.createContext({
      sequences: options.sequences,
      contextSize: { max: options.contextTokensMax },
      batchSize: batchTokens,
      threads: options.threads,
    })
    return {
      binding,
      llama,
      model,
      chatWrapper: binding.resolveChatWrapper(model),
      contextTokens: context.contextSize,
      ...poolSequences(Array.from({ length: options.sequences }, () => context.getSequence())),
    }
  } catch (error) {
    const isMemory = error instanceof binding.InsufficientMemoryError
    throw new ModelLoadError(isMemory ? 'memory' : 'model', error)
  }
}

/** Throws the package's error if the package does not work. */
export async function loadPackage({
  packageEntry,
  gpu,
  threads,
}: Pick<LoadOptions, 'packageEntry' | 'gpu' | 'threads'>) {
  const binding: Binding = await import(packageEntry)
  const llama = await binding.getLlama({
    // It must not download or compile anything.
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    gpu: gpu ? 'auto' : false,
    maxThreads: threads,
    logLevel: 'error',
    logger: (_level, message) => process.stderr.write(`${message.trimEnd()}\n`),
  })
  return { binding, llama }
}

function poolSequences(sequences: readonly Sequence[]) {
  const free = new Set(sequences)
  return {
    acquireSequence(prompt: Token[]): Sequence {
      const sharedTokens = (sequence: Sequence) =>
        sequence.compareContextTokens(prompt).firstDifferentIndex
      const [best] = [...free].toSorted((a, b) => sharedTokens(b) - sharedTokens(a))
      if (best === undefined) throw new Error('more generations than sequences')
      free.delete(best)
      return best
    },
    releaseSequence(sequence: Sequence) {
      free.add(sequence)
    },
  }
}
