import type { EngineConfig } from '#config/schema.ts'
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
import { backoffMs, type EngineDeps } from './engine-kind.ts'
import { createEngine } from './registry.ts'

/** The engines of this process with their capacity and health. */
export type EnginePool = {
  /** In the configured order; only the built-in demo if none is configured. */
  readonly engines: readonly Engine[]
  /** Languages that at least one engine serves. */
  readonly languages: readonly Language[]
  /** Whether an engine has capacity for another session. */
  hasCapacity(choice: EngineChoice): boolean
  /**
   * Opens a session on the first engine that serves the language and has capacity. Engines that
   * recently failed are tried last. Rejects with an `EngineError`: `busy` if all are at capacity,
   * otherwise the error of the last engine tried.
   */
  open(choice: EngineChoice, options: EngineOpenOptions): Promise<OpenedSession>
  close(): Promise<void>
}

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
  failures: number
  /** Tried last until then, by the clock of `performance.now()`. */
  backoffUntil: number
}

export function createEnginePool(configs: readonly EngineConfig[], deps: EngineDeps): EnginePool {
  const configured = configs.length === 0 ? [builtInEngine] : configs
  return poolEngines(
    configured.map((config) => createEngine(config, deps)),
    deps.log,
  )
}

/** Pools existing engines; the pool closes them. */
export function poolEngines(engines: readonly Engine[], log: Log): EnginePool {
  const pooled = engines.map(
    (engine): PooledEngine => ({ engine, sessions: 0, failures: 0, backoffUntil: 0 }),
  )
  return {
    engines,
    languages: languages.filter((language) =>
      engines.some((engine) => engine.languages.includes(language)),
    ),
    hasCapacity: (choice) => pooled.some((each) => serves(each, choice) && hasCapacity(each)),
    open: (choice, options) => openFirst(inOrder(pooled, choice), options, log),
    async close() {
      await Promise.all(engines.map((engine) => engine.close()))
    },
  }
}

function serves({ engine }: PooledEngine, { language, engineName }: EngineChoice): boolean {
  return engine.languages.includes(language) && (engineName ?? engine.name) === engine.name
}

function hasCapacity({ engine, sessions }: PooledEngine): boolean {
  return sessions < engine.limits.sessionsMax
}

/** In the configured order; then engines in backoff, the earliest first; last the one to avoid. */
function inOrder(pooled: readonly PooledEngine[], choice: EngineChoice): PooledEngine[] {
  const now = performance.now()
  const rank = ({ engine, backoffUntil }: PooledEngine) => {
    if (engine.name === choice.avoid) return Number.POSITIVE_INFINITY
    return backoffUntil > now ? backoffUntil : 0
  }
  const serving = pooled.filter((each) => serves(each, choice))
  return serving.toSorted((one, other) => (rank(one) === rank(other) ? 0 : rank(one) - rank(other)))
}

async function openFirst(
  candidates: readonly PooledEngine[],
  options: EngineOpenOptions,
  log: Log,
): Promise<OpenedSession> {
  if (candidates.length === 0) throw new EngineError('refused', 'no engine serves this')
  let last = new EngineError('busy', 'all engines are at capacity')
  for (const candidate of candidates) {
    if (!hasCapacity(candidate)) continue
    try {
      return await openOne(candidate, options, log)
    } catch (error) {
      last = toEngineError(error)
      if (options.signal.aborted) break
    }
  }
  throw last
}

/** Capacity is taken before the session opens, and released once when it ends. */
async function openOne(
  pooled: PooledEngine,
  options: EngineOpenOptions,
  log: Log,
): Promise<OpenedSession> {
  let isReleased = false
  const release = () => {
    if (!isReleased) pooled.sessions -= 1
    isReleased = true
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
  const pauseMs = backoffMs(pooled.failures, failureBackoff)
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
