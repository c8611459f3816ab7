import { AppError } from '#lib/errors.ts'
import type { LocalModel } from './local-model.ts'
import { type Entry, isIdle, openEntry, type Wanted } from './model-entry.ts'
import { createModelMemory, type MemoryOptions } from './model-memory.ts'
import type { ModelProcess } from './model-process.ts'

export type LoadedModelsOptions = MemoryOptions & {
  readonly settings: {
    readonly sequencesMax: number
    readonly queueMax: number
    readonly idleMs: number
  }
}

/** The models that are in memory, each in a process of its own, and who may use them. */
export type LoadedModels = {
  /**
   * A place at a model, which is loaded for it where it is not. Throws an `AppError`, or rejects with
   * the signal's reason.
   */
  enter(wanted: Wanted, signal: AbortSignal): Promise<Place>
  /** The process of a model, which is loaded where there is room for it; no other gives way. */
  peek(wanted: Wanted, signal: AbortSignal): Promise<ModelProcess>
  /** The context of a model that is in memory. */
  contextTokens(name: string): number | null
  /** Models that somebody uses or waits for, and how many do. */
  usedBy(installedAs: string): readonly { name: string; count: number }[]
  /** Takes models out of memory that nobody uses, as far as they are meant. */
  unload(isMeant: (model: LocalModel) => boolean): Promise<void>
  close(): Promise<void>
}

export type Place = {
  readonly process: ModelProcess
  /** The model did what it was asked. */
  worked(): void
  leave(): void
}

export function createLoadedModels(options: LoadedModelsOptions): LoadedModels {
  const { settings } = options
  const entries = new Map<string, Entry>()
  const memory = createModelMemory(entries, options)
  let isClosed = false

  /** Where the file has changed, the process of the one before goes once nobody uses it any more. */
  const entryOf = (wanted: Wanted): Entry => {
    if (isClosed) throw closed()
    const known = entries.get(wanted.model.name)
    if (known !== undefined && (known.key === wanted.key || !isIdle(known))) return known
    if (known !== undefined) void memory.unload(known)
    const entry = openEntry(wanted, settings)
    entries.set(wanted.model.name, entry)
    return entry
  }
  const restartIdleTimer = (entry: Entry) => {
    entry.usedAtMs = performance.now()
    clearTimeout(entry.idleTimer)
    if (!isIdle(entry) || entry.process === null) return
    entry.idleTimer = setTimeout(() => {
      if (isIdle(entry)) void memory.unload(entry)
    }, settings.idleMs)
  }
  /** Its process, which is loaded once for all who wait. */
  const processOf = (entry: Entry, mayEvict: boolean): Promise<ModelProcess> => {
    if (entry.loading !== null) return entry.loading
    if (entry.process !== null) return Promise.resolve(entry.process)
    entry.loading = memory.load(entry, mayEvict).finally(() => {
      entry.loading = null
      if (isClosed) void memory.unload(entry)
      else restartIdleTimer(entry)
    })
    // Who waits may have gone meanwhile.
    entry.loading.catch(() => {})
    return entry.loading
  }

  return {
    async enter(wanted, signal) {
      const entry = entryOf(wanted)
      clearTimeout(entry.idleTimer)
      const free = await entry.places.enter(signal)
      const leave = () => {
        free()
        restartIdleTimer(entry)
      }
      const worked = () => {
        entry.failures = 0
      }
      try {
        const process = await unlessAborted(processOf(entry, true), signal)
        return { process, worked, leave }
      } catch (error) {
        leave()
        throw error
      }
    },
    peek: async (wanted, signal) => unlessAborted(processOf(entryOf(wanted), false), signal),
    contextTokens: (name) => entries.get(name)?.contextTokens ?? null,
    usedBy: (installedAs) =>
      [...entries.values()]
        .filter((entry) => entry.model.installedAs === installedAs && !isIdle(entry))
        .map(({ model, places }) => ({ name: model.name, count: places.count() })),
    async unload(isMeant) {
      const meant = [...entries.values()].filter((entry) => isIdle(entry) && isMeant(entry.model))
      for (const { model } of meant) entries.delete(model.name)
      await Promise.all(meant.map(memory.unload))
    },
    async close() {
      isClosed = true
      await Promise.all([...entries.values()].map(memory.unload))
    },
  }
}

/** The outcome, or the signal's reason as soon as it aborts; the work itself goes on. */
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

function closed(): AppError {
  return new AppError('draining', 'The server is stopping.')
}
