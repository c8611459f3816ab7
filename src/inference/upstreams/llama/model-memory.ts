import { AppError } from '#lib/errors.ts'
import type { LocalModel } from './local-model.ts'
import type { LlamaLog } from './log.ts'
import { type Entry, forgetProcess, isIdle, noteFailure } from './model-entry.ts'
import type { ModelProcess } from './model-process.ts'

export type MemoryOptions = {
  readonly settings: {
    readonly modelsLoadedMax: number
    /** Of the files of the models. */
    readonly memoryBytesMax?: number
  }
  readonly start: (model: LocalModel) => ModelProcess
  readonly log: LlamaLog
}

/** Brings models into memory and takes them out, within what they may take together. */
export type ModelMemory = {
  /** Where there is no room, the models that were used least lately give way, if that may be. */
  load(entry: Entry, mayEvict: boolean): Promise<ModelProcess>
  unload(entry: Entry): Promise<void>
}

/** A start that is further away than this is refused. */
const restWaitedForMs = 2_000
/** When it is worth another try that a model in use makes room. */
const busyRetryS = 5

export function createModelMemory(
  entries: ReadonlyMap<string, Entry>,
  { settings, start, log }: MemoryOptions,
): ModelMemory {
  async function unload(entry: Entry): Promise<void> {
    clearTimeout(entry.idleTimer)
    const { process } = entry
    forgetProcess(entry)
    if (process === null) return
    await process.stop()
    log.info('a model was taken out of memory', { model: entry.model.name })
  }

  async function makeRoom(entry: Entry, mayEvict: boolean): Promise<void> {
    const { modelsLoadedMax, memoryBytesMax = Number.POSITIVE_INFINITY } = settings
    if (entry.model.bytes > memoryBytesMax) throw tooLarge()
    const leaving: Promise<void>[] = []
    for (;;) {
      const others = [...entries.values()].filter((each) => each !== entry && each.takesRoom)
      const bytes = others.reduce((sum, { model }) => sum + model.bytes, entry.model.bytes)
      if (others.length < modelsLoadedMax && bytes <= memoryBytesMax) break
      const [oldest] = others.filter(isIdle).toSorted((a, b) => a.usedAtMs - b.usedAtMs)
      if (oldest === undefined || !mayEvict) throw noRoom()
      leaving.push(unload(oldest))
    }
    entry.takesRoom = true
    // Their memory is free only once they are gone.
    await Promise.all(leaving)
  }

  return {
    unload,
    async load(entry, mayEvict) {
      const restMs = entry.startsAtMs - performance.now()
      if (restMs > restWaitedForMs) throw resting(restMs)
      if (restMs > 0) await Bun.sleep(restMs)
      await makeRoom(entry, mayEvict)
      const startedAtMs = performance.now()
      const process = start(entry.model)
      entry.process = process
      void process.gone.then(({ wasWanted }) => {
        if (entry.process === process) forgetProcess(entry)
        if (!wasWanted) noteFailure(entry)
      })
      const { contextTokens } = await process.loaded.catch(async (error) => {
        await process.gone
        throw error
      })
      entry.contextTokens = contextTokens
      log.info('a model is in memory', {
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
    'The model is larger than the memory that models may take here.',
  )
}

function noRoom(): AppError {
  return new AppError('upstream_overloaded', 'All places for models in memory are in use.', {
    retryAfterS: busyRetryS,
  })
}

function resting(restMs: number): AppError {
  return new AppError(
    'upstream_overloaded',
    'The model broke down several times in a row, and is started again after a rest.',
    { retryAfterS: Math.ceil(restMs / 1000) },
  )
}
