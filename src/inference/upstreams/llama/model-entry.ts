import type { LocalModel } from './local-model.ts'
import type { ModelProcess } from './model-process.ts'
import { createPlaces, type Places } from './places.ts'

/** A model's file; another one in its place has another `key`. */
export type Wanted = { readonly model: LocalModel; readonly key: string }

/** What is known of a model that was wanted, whether it is in memory or not. */
export type Entry = Wanted & {
  readonly places: Places
  /** Once it is started. */
  process: ModelProcess | null
  /** Once it is in memory. */
  contextTokens: number | null
  /** From before its process begins until it is told to end. */
  takesRoom: boolean
  loading: Promise<ModelProcess> | null
  /** Breakdowns in a row, and when the next start may be. */
  failures: number
  startsAtMs: number
  usedAtMs: number
  idleTimer: ReturnType<typeof setTimeout> | undefined
}

/** Between a process that broke down and the next one. */
const rest = { firstMs: 250, maxMs: 60_000 }

export function openEntry(
  { model, key }: Wanted,
  { sequencesMax, queueMax }: { sequencesMax: number; queueMax: number },
): Entry {
  return {
    model,
    key,
    places: createPlaces({ countMax: sequencesMax, waitingMax: queueMax }),
    process: null,
    contextTokens: null,
    takesRoom: false,
    loading: null,
    failures: 0,
    startsAtMs: 0,
    usedAtMs: performance.now(),
    idleTimer: undefined,
  }
}

export function isIdle({ places, loading }: Entry): boolean {
  return places.count() === 0 && loading === null
}

/** Its process is gone, or was told to go. */
export function forgetProcess(entry: Entry): void {
  entry.process = null
  entry.contextTokens = null
  entry.takesRoom = false
}

export function noteFailure(entry: Entry): void {
  const grownMs = rest.firstMs * 2 ** entry.failures
  entry.failures++
  entry.startsAtMs = performance.now() + Math.min(grownMs, rest.maxMs)
}
