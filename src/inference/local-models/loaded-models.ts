import type { CancelSignal } from '#lib/cancellation.ts'
import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import type { LoadableProcess, LocalModel, ModelFile } from './local-model.ts'
import { createSlots, type Slots } from './slots.ts'

export type LoadedModelsOptions<M extends LocalModel, P extends LoadableProcess> = {
  readonly settings: {
    readonly sequencesMax: number
    readonly queueMax: number
    readonly idleMs: number
    readonly modelsLoadedMax: number
    /** The most file bytes of all loaded models. */
    readonly memoryBytesMax?: number
  }
  readonly start: (model: M) => P
  readonly log: Pick<Log, 'info'>
}

export type ModelSlot<P extends LoadableProcess> = {
  readonly process: P
  /** Resets the failure count of the model. */
  succeeded(): void
  release(): void
}

/** The delay between a failed process and its restart. */
const restartBackoff = { minMs: 250, maxMs: 60_000 }
/** A restart with a longer remaining delay is refused. */
const backoffWaitMaxMs = 2_000
/** The `Retry-After` while all models in memory are in use. */
const busyRetryS = 5

/** The models in memory within its limits, each in its own process, and the slots of their requests. */
export class LoadedModels<M extends LocalModel, P extends LoadableProcess> {
  readonly #options: LoadedModelsOptions<M, P>
  readonly #entries = new Map<string, ModelEntry<M, P>>()
  #isClosed = false

  constructor(options: LoadedModelsOptions<M, P>) {
    this.#options = options
  }

  /** Acquires a slot and loads the model if needed. Rejects with an `AppError` or the signal's reason. */
  async acquire(file: ModelFile<M>, signal: CancelSignal): Promise<ModelSlot<P>> {
    const entry = this.#entryOf(file)
    clearTimeout(entry.idleTimer)
    const free = await entry.slots.acquire(signal)
    const release = () => {
      free()
      this.#restartIdleTimer(entry)
    }
    const succeeded = () => {
      entry.failures = 0
    }
    try {
      const process = await unlessAborted(this.#processOf(entry, true), signal)
      return { process, succeeded, release }
    } catch (error) {
      release()
      throw error
    }
  }

  /** The process of a model, which is loaded only if no other model has to be unloaded. */
  async loadWithoutEviction(file: ModelFile<M>, signal: CancelSignal): Promise<P> {
    return unlessAborted(this.#processOf(this.#entryOf(file), false), signal)
  }

  /** The context size of a loaded model; null if it is not loaded. */
  contextTokens(name: string): number | null {
    return this.#entries.get(name)?.contextTokens ?? null
  }

  /** The models of an installation that are in use, with the number of their requests. */
  usedBy(installedAs: string): { name: string; count: number }[] {
    return [...this.#entries.values()]
      .filter((entry) => entry.model.installedAs === installedAs && !entry.isIdle())
      .map(({ model, slots }) => ({ name: model.name, count: slots.count() }))
  }

  /** Unloads the idle models that match. */
  async unload(matches: (model: M) => boolean): Promise<void> {
    const all = [...this.#entries.values()]
    const idle = all.filter((entry) => entry.isIdle() && matches(entry.model))
    for (const { model } of idle) this.#entries.delete(model.name)
    await Promise.all(idle.map((entry) => this.#unload(entry)))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#entries.values()].map((entry) => this.#unload(entry)))
  }

  /** After a change of the file, the previous process is stopped as soon as it is idle. */
  #entryOf(file: ModelFile<M>): ModelEntry<M, P> {
    if (this.#isClosed) throw new AppError('draining', 'The server is stopping.')
    const known = this.#entries.get(file.model.name)
    if (known !== undefined && (known.key === file.key || !known.isIdle())) return known
    if (known !== undefined) void this.#unload(known)
    const entry = new ModelEntry<M, P>(file, this.#options.settings)
    this.#entries.set(file.model.name, entry)
    return entry
  }

  #restartIdleTimer(entry: ModelEntry<M, P>): void {
    entry.usedAtMs = performance.now()
    clearTimeout(entry.idleTimer)
    if (!entry.isIdle() || entry.process === null) return
    entry.idleTimer = setTimeout(() => {
      if (entry.isIdle()) void this.#unload(entry)
    }, this.#options.settings.idleMs)
  }

  /** The process of an entry; concurrent callers share one load. */
  #processOf(entry: ModelEntry<M, P>, mayEvict: boolean): Promise<P> {
    if (entry.loading !== null) return entry.loading
    if (entry.process !== null) return Promise.resolve(entry.process)
    entry.loading = this.#load(entry, mayEvict).finally(() => {
      entry.loading = null
      if (this.#isClosed) void this.#unload(entry)
      else this.#restartIdleTimer(entry)
    })
    // All callers may have been cancelled.
    entry.loading.catch(() => {})
    return entry.loading
  }

  /** `mayEvict`: idle models may be unloaded, least recently used first, to make room. */
  async #load(entry: ModelEntry<M, P>, mayEvict: boolean): Promise<P> {
    const delayMs = entry.retryAtMs - performance.now()
    if (delayMs > backoffWaitMaxMs) throw backingOff(delayMs)
    if (delayMs > 0) await Bun.sleep(delayMs)
    await this.#reserveMemory(entry, mayEvict)
    const startedAtMs = performance.now()
    const process = this.#options.start(entry.model)
    entry.process = process
    void process.exited.then(({ isExpected }) => {
      if (entry.process === process) entry.clearProcess()
      if (!isExpected) entry.recordFailure()
    })
    const { contextTokens } = await process.loaded.catch(async (error) => {
      await process.exited
      throw error
    })
    entry.contextTokens = contextTokens
    this.#options.log.info('model loaded', {
      model: entry.model.name,
      pid: process.pid,
      load_ms: Math.round(performance.now() - startedAtMs),
      context_tokens: contextTokens,
    })
    return process
  }

  async #reserveMemory(entry: ModelEntry<M, P>, mayEvict: boolean): Promise<void> {
    const { modelsLoadedMax, memoryBytesMax = Number.POSITIVE_INFINITY } = this.#options.settings
    if (entry.model.bytes > memoryBytesMax) throw tooLarge()
    const leaving: Promise<void>[] = []
    for (;;) {
      const isOther = (each: ModelEntry<M, P>) => each !== entry && each.reservesMemory
      const others = [...this.#entries.values()].filter(isOther)
      const bytes = others.reduce((sum, { model }) => sum + model.bytes, entry.model.bytes)
      if (others.length < modelsLoadedMax && bytes <= memoryBytesMax) break
      const idle = others.filter((each) => each.isIdle())
      const [oldest] = idle.toSorted((a, b) => a.usedAtMs - b.usedAtMs)
      if (oldest === undefined || !mayEvict) throw memoryInUse()
      leaving.push(this.#unload(oldest))
    }
    entry.reservesMemory = true
    // Memory is free only after the processes exited.
    await Promise.all(leaving)
  }

  async #unload(entry: ModelEntry<M, P>): Promise<void> {
    clearTimeout(entry.idleTimer)
    const { process } = entry
    entry.clearProcess()
    if (process === null) return
    await process.stop()
    this.#options.log.info('model unloaded', { model: entry.model.name })
  }
}

/** The state of a model that was requested, in memory or not. */
class ModelEntry<M extends LocalModel, P extends LoadableProcess> {
  readonly model: M
  readonly key: string
  readonly slots: Slots
  /** Null until it is started. */
  process: P | null = null
  /** Null until it is loaded. */
  contextTokens: number | null = null
  /** From the reservation before its process starts until the process is stopped. */
  reservesMemory = false
  loading: Promise<P> | null = null
  /** Consecutive failures, and the earliest time of the next start. */
  failures = 0
  retryAtMs = 0
  usedAtMs = performance.now()
  idleTimer: ReturnType<typeof setTimeout> | undefined

  constructor({ model, key }: ModelFile<M>, settings: LoadedModelsOptions<M, P>['settings']) {
    this.model = model
    this.key = key
    this.slots = createSlots({ slotsMax: settings.sequencesMax, queueMax: settings.queueMax })
  }

  isIdle(): boolean {
    return this.slots.count() === 0 && this.loading === null
  }

  /** Its process exited or is being stopped. */
  clearProcess() {
    this.process = null
    this.contextTokens = null
    this.reservesMemory = false
  }

  recordFailure() {
    const delayMs = restartBackoff.minMs * 2 ** this.failures
    this.failures++
    this.retryAtMs = performance.now() + Math.min(delayMs, restartBackoff.maxMs)
  }
}

/** The outcome, or the signal's reason as soon as it aborts; the work itself continues. */
async function unlessAborted<T>(work: Promise<T>, signal: CancelSignal): Promise<T> {
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

function tooLarge(): AppError {
  return new AppError(
    'upstream_refused',
    'The model exceeds the memory limit for models on this machine.',
  )
}

function memoryInUse(): AppError {
  return new AppError('upstream_overloaded', 'All models in memory are in use.', {
    retryAfterS: busyRetryS,
  })
}

function backingOff(delayMs: number): AppError {
  return new AppError(
    'upstream_overloaded',
    'The model failed repeatedly; it is restarted after a delay.',
    { retryAfterS: Math.ceil(delayMs / 1000) },
  )
}
