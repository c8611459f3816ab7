import type { Binding, ChatWrapper, Llama, Model, Sequence, Token } from './binding.ts'
import type { LoadFault, LoadOptions } from './wire.ts'

/** A model in memory, with its contexts. */
export type LoadedModel = {
  readonly llama: Llama
  readonly model: Model
  readonly binding: Binding
  readonly chatWrapper: ChatWrapper
  /** Of each sequence. */
  readonly contextTokens: number
  /**
   * A sequence for a prompt, the one that holds most of it already. There is always one: a gateway
   * begins no more generations than there are.
   */
  takeSequence(prompt: Token[]): Sequence
  giveBack(sequence: Sequence): void
}

export class Unloadable extends Error {
  readonly reason: LoadFault

  constructor(reason: LoadFault, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.reason = reason
  }
}

/**
 * So many tokens of a prompt are read at a time. It is what may still be done for a prompt that nobody
 * wants any more, so it is fewer than would be quickest.
 */
export const batchTokens = 128

/** Throws `Unloadable`. */
export async function loadModel(options: LoadOptions): Promise<LoadedModel> {
  const { binding, llama } = await loadPackage(options).catch((error) => {
    throw new Unloadable('package', error)
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
      ...shareSequences(Array.from({ length: options.sequences }, () => context.getSequence())),
    }
  } catch (error) {
    const isMemory = error instanceof binding.InsufficientMemoryError
    throw new Unloadable(isMemory ? 'memory' : 'model', error)
  }
}

/** Throws what the package does not work for. */
export async function loadPackage({
  packageEntry,
  gpu,
  threads,
}: Pick<LoadOptions, 'packageEntry' | 'gpu' | 'threads'>) {
  const binding: Binding = await import(packageEntry)
  const llama = await binding.getLlama({
    // It may neither fetch nor compile anything.
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

function shareSequences(sequences: readonly Sequence[]) {
  const free = new Set(sequences)
  return {
    takeSequence(prompt: Token[]): Sequence {
      const known = (sequence: Sequence) =>
        sequence.compareContextTokens(prompt).firstDifferentIndex
      const [best] = [...free].toSorted((a, b) => known(b) - known(a))
      if (best === undefined) throw new Error('there are more generations than sequences')
      free.delete(best)
      return best
    },
    giveBack(sequence: Sequence) {
      free.add(sequence)
    },
  }
}
