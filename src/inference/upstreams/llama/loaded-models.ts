import { AppError } from '#lib/errors.ts'
import type { LocalModel } from './local-model.ts'
import {
  createEntry,
  createModelMemory,
  isIdle,
  type MemoryOptions,
  type ModelEntry,
  type ModelFile,
} from './model-memory.ts'
import type { ModelProcess } from './model-process.ts'

export type LoadedModelsOptions = MemoryOptions & {
  readonly settings: {
    readonly sequencesMax: number
    readonly queueMax: number
    readonly idleMs: number
  }
}

/** The models in memory, each in its own process, and the slots of their requests. */
export type LoadedModels = {
  /** Acquires a slot and loads the model if needed. Rejects with an `AppError` or the signal's reason. */
  acquire(file: ModelFile, signal: AbortSignal): Promise<ModelSlot>
  /** The process of a model, which is loaded only if no other model has to be unloaded. */
  loadWithoutEviction(file: ModelFile, signal: AbortSignal): Promise<ModelProcess>
  /** The context size of a loaded model; null if it is not loaded. */
  contextTokens(name: string): number | null
  /** The models of an installation that are in use, with the number of their requests. */
  usedBy(installedAs: string): readonly { name: string; count: number }[]
  /** Unloads the idle models that match. */
  unload(matches: (model: LocalModel) => boolean): Promise<void>
  close(): Promise<void>
}

export type ModelSlot = {
  readonly process: ModelProcess
  /** Resets the failure count of the model. */
  succeeded(): void
  release(): void
}

export function createLoadedModels(options: LoadedModelsOptions): LoadedModels {
  const { settings } = options
  const entries = new Map<string, ModelEntry>()
  const memory = createModelMemory(entries, options)
  let isClosed = false

  /** After a change of the file, the previous process is stopped as soon as it is idle. */
  const entryOf = (file: ModelFile): ModelEntry => {
    if (isClosed) throw draining()
    const known = entries.get(file.model.name)
    if (known !== undefined && (known.key === file.key || !isIdle(known))) return known
    if (known !== undefined) void memory.unload(known)
    const entry = createEntry(file, settings)
    entries.set(file.model.name, entry)
    return entry
  }
  const restartIdleTimer = (entry: ModelEntry) => {
    entry.usedAtMs = performance.now()
    clearTimeout(entry.idleTimer)
    if (!isIdle(entry) || entry.process === null) return
    entry.idleTimer = setTimeout(() => {
      if (isIdle(entry)) void memory.unload(entry)
    }, settings.idleMs)
  }
  /** The process of an entry; concurrent callers share one load. */
  const processOf = (entry: ModelEntry, mayEvict: boolean): Promise<ModelProcess> => {
    if (entry.loading !== null) return entry.loading
    if (entry.process !== null) return Promise.resolve(entry.process)
    entry.loading = memory.load(entry, mayEvict).finally(() => {
      entry.loading = null
      if (isClosed) void memory.unload(entry)
      else restartIdleTimer(entry)
    })
    // All callers may have been cancelled.
    entry.loading.catch(() => {})
    return entry.loading
  }

  return {
    async acquire(file, signal) {
      const entry = entryOf(file)
      clearTimeout(entry.idleTimer)
      const free = await entry.slots.acquire(signal)
      const leave = () => {
        free()
        restartIdleTimer(entry)
      }
      const worked = () => {
        entry.failures = 0
      }
      try {
        const process = await unlessAborted(processOf(entry, true), signal)
        return { process, succeeded: worked, release: leave }
      } catch (error) {
        leave()
        throw error
      }
    },
    loadWithoutEviction: async (file, signal) =>
      unlessAborted(processOf(entryOf(file), false), signal),
    contextTokens: (name) => entries.get(name)?.contextTokens ?? null,
    usedBy: (installedAs) =>
      [...entries.values()]
        .filter((entry) => entry.model.installedAs === installedAs && !isIdle(entry))
        .map(({ model, slots }) => ({ name: model.name, count: slots.count() })),
    async unload(matches) {
      const idle = [...entries.values()].filter((entry) => isIdle(entry) && matches(entry.model))
      for (const { model } of idle) entries.delete(model.name)
      await Promise.all(idle.map(memory.unload))
    },
    async close() {
      isClosed = true
      await Promise.all([...entries.values()].map(memory.unload))
    },
  }
}

/** The outcome, or the signal's reason as soon as it aborts; the work itself continues. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  aborted.catch(() => {})
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function draining(): AppError {
  return new AppError('draining', 'The server is stopping.')
}
