import type { EngineConfig } from '#config/schema.ts'
import { jitteredBackoffMs } from '#lib/backoff.ts'
import {
  type Engine,
  EngineError,
  type EngineEvent,
  type EngineOpenOptions,
  type EngineSession,
  type Language,
  languages,
} from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { builtInEngine } from './demo.ts'
import type { EngineDeps } from './engine-kind.ts'
import { builtInLocal } from './local/engine.ts'
import { createEngine } from './registry.ts'

export type EngineChoice = {
  readonly language: Language
  /** Only this engine; null: any. */
  readonly engineName: string | null
  /** The engine that has just failed, used only if there is no other. */
  readonly avoid: string | null
}

export type OpenedSession = { readonly engine: Engine; readonly session: EngineSession }

/** How long an engine is tried last after consecutive failures. */
const failureBackoff = { firstMs: 1_000, maxMs: 60_000 }

type PooledEngine = {
  readonly engine: Engine
  sessions: number
  /** Consecutive ones. */
  failures: number
  failuresTotal: number
  /** By the clock of `performance.now()`. */
  lastFailure: { readonly kind: EngineError['kind']; readonly atMs: number } | null
  /** Tried last until then, by the clock of `performance.now()`. */
  backoffUntil: number
}

export function createEnginePool(configs: readonly EngineConfig[], deps: EngineDeps): EnginePool {
  return new EnginePool(
    configuredEngines(configs).map((config) => createEngine(config, deps)),
    deps.log,
  )
}

/**
 * The engines of a changed configuration: those that stay the same, with their sessions and warm
 * programs, and new ones.
 */
export function changedEngines(
  { engines }: EnginePool,
  { before, next }: { before: readonly EngineConfig[]; next: readonly EngineConfig[] },
  deps: EngineDeps,
): readonly Engine[] {
  const known = new Map(
    configuredEngines(before).map((config, at) => [config.name, { config, at }]),
  )
  return configuredEngines(next).map((config) => {
    const same = known.get(config.name)
    const engine = Bun.deepEquals(same?.config, config) ? engines[same?.at ?? 0] : undefined
    return engine ?? createEngine(config, deps)
  })
}

/** Without any: a local model if it is installed, then the demo. */
export function configuredEngines(configs: readonly EngineConfig[]): readonly EngineConfig[] {
  return configs.length === 0 ? [builtInLocal, builtInEngine] : configs
}

/** The engines of this process with their capacity and health. Closes them. */
export class EnginePool {
  /** In the configured order; only the built-in demo if none is configured. */
  engines: readonly Engine[] = []
  /** Languages that at least one engine serves. */
  languages: readonly Language[] = []
  #pooled: readonly PooledEngine[] = []
  /** Removed from the configuration, and closed when their last session ends. */
  readonly #removed = new Set<PooledEngine>()
  readonly #log: Log

  constructor(engines: readonly Engine[], log: Log) {
    this.#log = log
    this.replace(engines)
  }

  /** Sessions open on these engines from now on; sessions of removed ones continue there. */
  replace(engines: readonly Engine[]): void {
    const before = this.#pooled
    this.engines = engines
    this.languages = languages.filter((language) =>
      engines.some((engine) => engine.languages.includes(language)),
    )
    this.#pooled = engines.map((engine) => {
      const namesake = before.find((pooled) => pooled.engine.name === engine.name)
      return (
        before.find((pooled) => pooled.engine === engine) ?? {
          engine,
          sessions: 0,
          failures: 0,
          failuresTotal: namesake?.failuresTotal ?? 0,
          lastFailure: namesake?.lastFailure ?? null,
          backoffUntil: 0,
        }
      )
    })
    for (const pooled of before) {
      if (engines.includes(pooled.engine)) continue
      this.#removed.add(pooled)
      this.#closeUnused(pooled)
    }
  }

  #closeUnused(pooled: PooledEngine): void {
    if (pooled.sessions > 0 || !this.#removed.delete(pooled)) return
    void pooled.engine.close().catch((error: unknown) => {
      this.#log.warn('removed speech engine not closed', { engine: pooled.engine.name, error })
    })
  }

  /** Whether an engine has capacity for another session. */
  hasCapacity(choice: EngineChoice): boolean {
    return this.#candidates(choice).some(hasCapacity)
  }

  /**
   * Opens a session on the first engine that serves the language and has capacity. Engines that
   * recently failed are tried last. Rejects with an `EngineError`: `busy` if all are at capacity,
   * otherwise the error of the last engine tried.
   */
  async open(choice: EngineChoice, options: EngineOpenOptions): Promise<OpenedSession> {
    const candidates = this.#candidates(choice)
    if (candidates.length === 0) throw new EngineError('refused', 'no engine serves this')
    let last = new EngineError('busy', 'all engines are at capacity')
    for (const candidate of candidates) {
      if (!hasCapacity(candidate)) continue
      try {
        return await openOne(candidate, options, {
          log: this.#log,
          released: () => this.#closeUnused(candidate),
        })
      } catch (error) {
        last = toEngineError(error)
        if (options.signal.aborted) break
      }
    }
    throw last
  }

  /** The load and health of each engine in this process. */
  states() {
    const now = performance.now()
    return this.#pooled.map(({ engine, sessions, failuresTotal, lastFailure, backoffUntil }) => ({
      name: engine.name,
      isAvailable: engine.languages.some((language) => engine.available?.(language) !== false),
      sessions,
      sessionsMax: engine.limits.sessionsMax,
      failuresTotal,
      lastFailure,
      isInBackoff: backoffUntil > now,
    }))
  }

  async close(): Promise<void> {
    const all = [...this.engines, ...[...this.#removed].map(({ engine }) => engine)]
    await Promise.all(all.map((engine) => engine.close()))
  }

  /** In the configured order; then engines in backoff, the earliest first; last the one to avoid. */
  #candidates({ language, engineName, avoid }: EngineChoice): PooledEngine[] {
    const now = performance.now()
    const rank = ({ engine, backoffUntil }: PooledEngine) => {
      if (engine.name === avoid) return Number.POSITIVE_INFINITY
      return backoffUntil > now ? backoffUntil : 0
    }
    return this.#pooled
      .filter(({ engine }) => engine.languages.includes(language))
      .filter(({ engine }) => engine.available?.(language) !== false)
      .filter(({ engine }) => (engineName ?? engine.name) === engine.name)
      .toSorted((one, other) => (rank(one) === rank(other) ? 0 : rank(one) - rank(other)))
  }
}

function hasCapacity({ engine, sessions }: PooledEngine): boolean {
  return sessions < engine.limits.sessionsMax && engine.hasCapacity?.() !== false
}

/** Capacity is taken before the session opens, and released once when it ends. */
async function openOne(
  pooled: PooledEngine,
  options: EngineOpenOptions,
  { log, released }: { log: Log; released: () => void },
): Promise<OpenedSession> {
  let isReleased = false
  const release = () => {
    if (isReleased) return
    isReleased = true
    pooled.sessions -= 1
    released()
  }
  const listener = (event: EngineEvent) => {
    if (event.type === 'final' || event.type === 'ended') recordSuccess(pooled)
    if (event.type === 'failed') recordFailure(pooled, event.error, log)
    if (event.type === 'failed' || event.type === 'ended') release()
    options.listener(event)
  }
  pooled.sessions += 1
  try {
    const session = await pooled.engine.open({ ...options, listener })
    return {
      engine: pooled.engine,
      session: {
        write: (samples) => session.write(samples),
        finalize: () => session.finalize(),
        finalizesByEnding: () => session.finalizesByEnding?.() === true,
        end: () => session.end(),
        abort() {
          release()
          session.abort()
        },
      },
    }
  } catch (error) {
    release()
    if (!options.signal.aborted) recordFailure(pooled, toEngineError(error), log)
    throw error
  }
}

function recordSuccess(pooled: PooledEngine): void {
  pooled.failures = 0
  pooled.backoffUntil = 0
}

/** An engine at capacity or at its session limit has not failed. */
function recordFailure(pooled: PooledEngine, error: EngineError, log: Log): void {
  if (error.kind === 'busy' || error.kind === 'limit') return
  pooled.failures += 1
  pooled.failuresTotal += 1
  pooled.lastFailure = { kind: error.kind, atMs: performance.now() }
  const pauseMs = jitteredBackoffMs(pooled.failures, failureBackoff)
  pooled.backoffUntil = performance.now() + pauseMs
  log.warn('speech engine failed, using it last', {
    engine: pooled.engine.name,
    failures: pooled.failures,
    rest_ms: Math.round(pauseMs),
    kind: error.kind,
    error,
  })
}

function toEngineError(error: unknown): EngineError {
  if (error instanceof EngineError) return error
  return new EngineError('broken', 'the engine could not be opened', { cause: error })
}
