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
import { restMs } from './back-off.ts'
import { builtInEngine } from './demo.ts'
import type { EngineDeps } from './engine-deps.ts'
import { createEngine } from './registry.ts'

/** The engines of this process, their places, and their health. */
export type EnginePool = {
  /** In the order of the configuration; the built-in one where none is configured. */
  readonly engines: readonly Engine[]
  /** The languages that some engine serves. */
  readonly languages: readonly Language[]
  /** Whether a session could be opened now, as far as places go. */
  hasPlace(choice: EngineChoice): boolean
  /**
   * A session of the first engine that serves the language, has a place and is not resting after
   * failures; engines that rest come last. The place is given back at the session's end. Rejects
   * with an `EngineError`: `busy` where all places are taken, or what the last engine said.
   */
  open(choice: EngineChoice, options: EngineOpenOptions): Promise<OpenedSession>
  close(): Promise<void>
}

export type EngineChoice = {
  readonly language: Language
  /** Only the engine of this name; null: any. */
  readonly engineName: string | null
  /** The engine that has just failed: taken only where there is no other. */
  readonly avoid: string | null
}

export type OpenedSession = { readonly engine: Engine; readonly session: EngineSession }

/** After failures in a row, before an engine is preferred again. */
const engineRest = { firstMs: 1_000, maxMs: 60_000 }

/** One engine, what is taken of it, and how it has been. */
type Member = {
  readonly engine: Engine
  sessions: number
  failures: number
  /** By the clock of `performance.now()`. */
  restsUntil: number
}

export function createEnginePool(configs: readonly EngineConfig[], deps: EngineDeps): EnginePool {
  const configured = configs.length === 0 ? [builtInEngine] : configs
  return poolEngines(
    configured.map((config) => createEngine(config, deps)),
    deps.log,
  )
}

/** A pool of engines that are there already; it closes them. */
export function poolEngines(pooled: readonly Engine[], log: Log): EnginePool {
  const members = pooled.map(
    (engine): Member => ({ engine, sessions: 0, failures: 0, restsUntil: 0 }),
  )
  const engines = members.map(({ engine }) => engine)
  return {
    engines,
    languages: languages.filter((language) =>
      engines.some((engine) => engine.languages.includes(language)),
    ),
    hasPlace: (choice) => members.some((member) => serves(member, choice) && hasPlace(member)),
    open: (choice, options) => openFirst(inOrder(members, choice), options, log),
    async close() {
      await Promise.all(engines.map((engine) => engine.close()))
    },
  }
}

function serves({ engine }: Member, { language, engineName }: EngineChoice): boolean {
  return engine.languages.includes(language) && (engineName ?? engine.name) === engine.name
}

function hasPlace({ engine, sessions }: Member): boolean {
  return sessions < engine.limits.sessionsMax
}

/** As configured; then those that rest, whose rest ends first; last the one to avoid. */
function inOrder(members: readonly Member[], choice: EngineChoice): Member[] {
  const now = performance.now()
  const rank = ({ engine, restsUntil }: Member) => {
    if (engine.name === choice.avoid) return Number.POSITIVE_INFINITY
    return restsUntil > now ? restsUntil : 0
  }
  const served = members.filter((member) => serves(member, choice))
  return served.toSorted((one, other) => (rank(one) === rank(other) ? 0 : rank(one) - rank(other)))
}

async function openFirst(
  candidates: readonly Member[],
  options: EngineOpenOptions,
  log: Log,
): Promise<OpenedSession> {
  if (candidates.length === 0) throw new EngineError('refused', 'no engine serves this')
  let last = new EngineError('busy', 'all sessions of the engines are taken')
  for (const member of candidates) {
    if (!hasPlace(member)) continue
    try {
      return await openOne(member, options, log)
    } catch (error) {
      last = asEngineError(error)
      if (options.signal.aborted) break
    }
  }
  throw last
}

/** The place is taken before the engine is asked, and given back once, whatever comes of it. */
async function openOne(
  member: Member,
  options: EngineOpenOptions,
  log: Log,
): Promise<OpenedSession> {
  const giveBack = takePlace(member)
  const listener = (event: EngineEvent) => {
    if (event.type === 'final' || event.type === 'ended') noteSuccess(member)
    if (event.type === 'failed') noteFailure(member, event.error, log)
    if (event.type === 'failed' || event.type === 'ended') giveBack()
    options.listener(event)
  }
  try {
    const session = await member.engine.open({ ...options, listener })
    const abort = () => {
      giveBack()
      session.abort()
    }
    return { engine: member.engine, session: { ...handed(session), abort } }
  } catch (error) {
    giveBack()
    if (!options.signal.aborted) noteFailure(member, asEngineError(error), log)
    throw error
  }
}

function takePlace(member: Member): () => void {
  let isTaken = true
  member.sessions += 1
  return () => {
    if (isTaken) member.sessions -= 1
    isTaken = false
  }
}

/** The session as its engine made it, which may be an object of a class. */
function handed(session: EngineSession) {
  return {
    write: (samples: Int16Array) => session.write(samples),
    finalize: () => session.finalize(),
    end: () => session.end(),
  }
}

function noteSuccess(member: Member): void {
  member.failures = 0
  member.restsUntil = 0
}

/** An engine that is full, or has done its hours, has not failed. */
function noteFailure(member: Member, error: EngineError, log: Log): void {
  if (error.kind === 'busy' || error.kind === 'limit') return
  member.failures += 1
  const pauseMs = restMs(member.failures, engineRest)
  member.restsUntil = performance.now() + pauseMs
  log.warn('a speech engine failed and is asked last for a while', {
    engine: member.engine.name,
    failures: member.failures,
    rest_ms: Math.round(pauseMs),
    kind: error.kind,
    error,
  })
}

function asEngineError(error: unknown): EngineError {
  if (error instanceof EngineError) return error
  return new EngineError('broken', 'the engine could not be opened', { cause: error })
}
