import { AppError } from '#lib/errors.ts'
import type { LlamaLog, LocalModel } from './local-model.ts'
import type { ModelProcess } from './model-process.ts'
import { createSlots, type Slots } from './slots.ts'

/** A model and the key of its file, which changes when the file is replaced. */
export type ModelFile = { readonly model: LocalModel; readonly key: string }

/** The state of a model that was requested, in memory or not. */
export type ModelEntry = ModelFile & {
  readonly slots: Slots
  /** Null until it is started. */
  process: ModelProcess | null
  /** Null until it is loaded. */
  contextTokens: number | null
  /** From the reservation before its process starts until the process is stopped. */
  reservesMemory: boolean
  loading: Promise<ModelProcess> | null
  /** Consecutive failures, and the earliest time of the next start. */
  failures: number
  retryAtMs: number
  usedAtMs: number
  idleTimer: ReturnType<typeof setTimeout> | undefined
}

/** The delay between a failed process and its restart. */
const restartBackoff = { minMs: 250, maxMs: 60_000 }

export function createEntry(
  { model, key }: ModelFile,
  { sequencesMax, queueMax }: { sequencesMax: number; queueMax: number },
): ModelEntry {
  return {
    model,
    key,
    slots: createSlots({ slotsMax: sequencesMax, queueMax }),
    process: null,
    contextTokens: null,
    reservesMemory: false,
    loading: null,
    failures: 0,
    retryAtMs: 0,
    usedAtMs: performance.now(),
    idleTimer: undefined,
  }
}

export function isIdle({ slots, loading }: ModelEntry): boolean {
  return slots.count() === 0 && loading === null
}

/** Its process exited or is being stopped. */
function clearProcess(entry: ModelEntry): void {
  entry.process = null
  entry.contextTokens = null
  entry.reservesMemory = false
}

function recordFailure(entry: ModelEntry): void {
  const delayMs = restartBackoff.minMs * 2 ** entry.failures
  entry.failures++
  entry.retryAtMs = performance.now() + Math.min(delayMs, restartBackoff.maxMs)
}

export type MemoryOptions = {
  readonly settings: {
    readonly modelsLoadedMax: number
    /** The most file bytes of all loaded models. */
    readonly memoryBytesMax?: number
  }
  readonly start: (model: LocalModel) => ModelProcess
  readonly log: LlamaLog
}

/** Loads and unloads models within the memory limits. */
export type ModelMemory = {
  /** `mayEvict`: idle models may be unloaded, least recently used first, to make room. */
  load(entry: ModelEntry, mayEvict: boolean): Promise<ModelProcess>
  unload(entry: ModelEntry): Promise<void>
}

/** A restart with a longer remaining delay is refused. */
const backoffWaitMaxMs = 2_000
/** The `Retry-After` while all models in memory are in use. */
const busyRetryS = 5

export function createModelMemory(
  entries: ReadonlyMap<string, ModelEntry>,
  { settings, start, log }: MemoryOptions,
): ModelMemory {
  async function unload(entry: ModelEntry): Promise<void> {
    clearTimeout(entry.idleTimer)
    const { process } = entry
    clearProcess(entry)
    if (process === null) return
    await process.stop()
    log.info('model unloaded', { model: entry.model.name })
  }

  async function reserveMemory(entry: ModelEntry, mayEvict: boolean): Promise<void> {
    const { modelsLoadedMax, memoryBytesMax = Number.POSITIVE_INFINITY } = settings
    if (entry.model.bytes > memoryBytesMax) throw tooLarge()
    const leaving: Promise<void>[] = []
    for (;;) {
      const others = [...entries.values()].filter((each) => each !== entry && each.reservesMemory)
      const bytes = others.reduce((sum, { model }) => sum + model.bytes, entry.model.bytes)
      if (others.length < modelsLoadedMax && bytes <= memoryBytesMax) break
      const [oldest] = others.filter(isIdle).toSorted((a, b) => a.usedAtMs - b.usedAtMs)
      if (oldest === undefined || !mayEvict) throw memoryInUse()
      leaving.push(unload(oldest))
    }
    entry.reservesMemory = true
    // Memory is free only after the processes exited.
    await Promise.all(leaving)
  }

  return {
    unload,
    async load(entry, mayEvict) {
      const delayMs = entry.retryAtMs - performance.now()
      if (delayMs > backoffWaitMaxMs) throw backingOff(delayMs)
      if (delayMs > 0) await Bun.sleep(delayMs)
      await reserveMemory(entry, mayEvict)
      const startedAtMs = performance.now()
      const process = start(entry.model)
      entry.process = process
      void process.exited.then(({ isExpected: wasWanted }) => {
        if (entry.process === process) clearProcess(entry)
        if (!wasWanted) recordFailure(entry)
      })
      const { contextTokens } = await process.loaded.catch(async (error) => {
        await process.exited
        throw error
      })
      entry.contextTokens = contextTokens
      log.info('model loaded', {
        model: entry.model.name,
        pid: process.pid,
        load_ms: Math.round(performance.now() - startedAtMs),
        context_tokens: contextTokens,
      })
      return process
    },
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
