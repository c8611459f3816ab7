import type { Config } from '#config/schema.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { AdmitSpeech } from '#limits/speech.ts'
import type { Engine, Language } from '#speech/engine.ts'
import type { OpenRecognition } from '#speech/recognition/recognition.ts'
import type { Log } from '#telemetry/log.ts'
import type { SpeechUse } from '#usage/record.ts'
import { AudioBudget } from './audio-queue.ts'
import type { ResumeRequest } from './client-frames.ts'
import { Connection, type UpgradeRequest } from './connection.ts'
import type { ClientSocket } from './outbox.ts'
import { type SessionQuery, unsupportedLanguage } from './query.ts'
import { type SessionDeps, type SessionStart, SpeechSession } from './session.ts'
import { exchangeErrorOf, fromRequestError, noCapacity, SessionError } from './session-error.ts'
import { endSpeechSpan, startSpeechSpan } from './speech-span.ts'
import type { SessionEnding } from './transcriber.ts'

export type SpeechSessionsDeps = {
  readonly config: Pick<Config, 'speech' | 'drain'>
  /** Languages that at least one engine serves. */
  readonly languages: () => readonly Language[]
  /** The engine of this name, if the principal may use it. */
  readonly findEngine: (
    principal: RequestPrincipal,
    name: string,
  ) => Pick<Engine, 'languages'> | undefined
  readonly log: Log
  readonly openRecognition: OpenRecognition
  /** Limits of callers; absent: none. */
  readonly admit?: AdmitSpeech | undefined
  /** Called once for each session that ends. */
  readonly onUsed?: ((use: SpeechUse) => void) | undefined
}

/** One timer checks the deadlines of all sessions. */
const tickMs = 250
/** The process was frozen, or very busy, if a check comes later than so many. */
const frozenTicks = 4
/** Frames kept of ended sessions, for clients that have missed the last ones. */
const endedCharsMax = 16_777_216

/** The connections and speech sessions of this process. Owns their limits and the timer. */
export class SpeechSessions {
  readonly settings: Config['speech']
  readonly languages: () => readonly Language[]
  readonly log: Log
  readonly #sessionDeps: SessionDeps
  readonly #budget: AudioBudget
  readonly #findEngine: SpeechSessionsDeps['findEngine']
  readonly #admit: SpeechSessionsDeps['admit']
  readonly #onUsed: SpeechSessionsDeps['onUsed']
  readonly #connections = new Set<Connection>()
  readonly #live = new Map<string, SpeechSession>()
  readonly #ended: ReturnType<typeof createEndedSessions>
  #timer: Timer | undefined
  #tickedAtMs = 0

  constructor(deps: SpeechSessionsDeps) {
    const { config, languages, log, openRecognition, findEngine, admit, onUsed } = deps
    const settings = config.speech
    this.settings = settings
    this.languages = languages
    this.log = log
    this.#findEngine = findEngine
    this.#admit = admit
    this.#onUsed = onUsed
    this.#budget = new AudioBudget(settings.queueTotalBytesMax)
    this.#ended = createEndedSessions(settings.sessionsMax)
    const drainMs = Math.min(settings.finalizeMs, config.drain.graceMs)
    this.#sessionDeps = { openRecognition, settings, budget: this.#budget, drainMs }
  }

  /** Registers a socket after its upgrade. The caller opens it and forwards its events. */
  connect(request: UpgradeRequest, socket: ClientSocket): Connection {
    const connection = new Connection(this, request, socket)
    this.#connections.add(connection)
    if (this.#timer === undefined) {
      this.#tickedAtMs = performance.now()
      this.#timer = setInterval(() => this.#tick(), tickMs)
    }
    return connection
  }

  disconnected(connection: Connection): void {
    this.#connections.delete(connection)
  }

  /**
   * Throws a `SessionError` at capacity. Before the handshake it is not known whether the client
   * resumes a session. `userId`: null before the client is authorised.
   */
  admit(userId: string | null): void {
    const { sessionsMax, sessionsPerUserMax } = this.settings
    // One connection for each session, and as many that start or resume one.
    if (this.#connections.size > sessionsMax * 2) throw noCapacity('sessions')
    if (userId === null) return
    const pending = [...this.#connections].filter((each) => each.pendingUserId() === userId)
    if (pending.length >= sessionsPerUserMax) throw noCapacity('sessions_of_user')
    if (this.#countOf(userId) === 0) this.#requireCapacity(userId)
  }

  /** Throws a `SessionError` unless the principal may use the engine it names, for this language. */
  requireEngine(principal: RequestPrincipal, { engineName, language }: SessionQuery): void {
    if (engineName === null) return
    const engine = this.#findEngine(principal, engineName)
    if (engine === undefined) {
      // The same for an engine that others may use.
      throw new SessionError('engine_not_found', 'There is no such speech engine.', {
        param: 'engine',
      })
    }
    if (!engine.languages.includes(language)) throw unsupportedLanguage(language, engine.languages)
  }

  /** Throws a `SessionError` at capacity. */
  startSession(start: SessionStart): SpeechSession {
    const { principal } = start.context
    this.#requireCapacity(principal.userId)
    const admitted = this.#admit?.(principal, 'session') ?? null
    let reservation = admitted instanceof Promise ? null : admitted
    /** Once the session is over. */
    let audioMs: number | null = null
    const span = startSpeechSpan(start)
    const session = new SpeechSession(this.#sessionDeps, start, (ending) => {
      audioMs = ending.stats?.audio_ms ?? 0
      reservation?.settle(audioMs)
      this.#live.delete(session.id)
      reportEnding(session, ending)
      if (span !== null) endSpeechSpan(span, session, ending)
      this.#onUsed?.(useOf(session, ending))
      if (session.isResumable()) this.#ended.add(session)
    })
    this.#live.set(session.id, session)
    start.context.exchange?.workStarted()
    if (admitted instanceof Promise) {
      // The session starts meanwhile: a refusal ends it.
      admitted.then(
        (leased) => {
          if (audioMs === null) reservation = leased
          else leased?.settle(audioMs)
        },
        (error: unknown) => session.fail(fromRequestError(error)),
      )
    }
    return session
  }

  /** The session to resume. Throws a `SessionError`. */
  findSession(resume: ResumeRequest, userId: string, query: SessionQuery): SpeechSession {
    const session = this.#live.get(resume.sessionId) ?? this.#ended.find(resume.sessionId)
    if (session?.matches(resume, userId, query) === true) return session
    // The same error for every reason, so that it does not reveal which sessions exist.
    throw new SessionError('resume_failed', 'The session does not exist or has ended.', {
      param: 'resume',
      details: { session_id: resume.sessionId },
    })
  }

  metrics() {
    const live = [...this.#live.values()]
    return {
      connections: this.#connections.size,
      /** Including those that wait for their client to resume. */
      sessions: live.length,
      waiting: live.filter((session) => !session.isAttached()).length,
      /** Undecoded audio of all sessions, and its peak. */
      queuedBytes: this.#budget.queuedBytes,
      queuedBytesPeak: this.#budget.queuedBytesPeak,
      /** Frames that clients have not read. */
      unreadBytes: live.reduce((sum, { outbox }) => sum + outbox.pendingBytes(), 0),
    }
  }

  /** Ends all sessions immediately. */
  close(): void {
    for (const session of [...this.#live.values()]) session.abort('draining')
    this.#ended.clear()
    this.#stopTimer()
  }

  #countOf(userId: string): number {
    const sessions = [...this.#live.values()]
    return sessions.filter(({ start }) => start.context.principal.userId === userId).length
  }

  #requireCapacity(userId: string): void {
    const { sessionsMax, sessionsPerUserMax } = this.settings
    if (this.#live.size >= sessionsMax) throw noCapacity('sessions')
    if (this.#countOf(userId) >= sessionsPerUserMax) throw noCapacity('sessions_of_user')
    if (this.#budget.isExceeded()) throw noCapacity('audio')
  }

  #tick(): void {
    const nowMs = performance.now()
    const wasFrozen = nowMs - this.#tickedAtMs > frozenTicks * tickMs
    this.#tickedAtMs = nowMs
    // What has arrived meanwhile is read before deadlines count.
    if (wasFrozen) return
    for (const connection of [...this.#connections]) connection.tick()
    for (const session of [...this.#live.values()]) session.tick()
    this.#ended.dropExpired()
    if (this.#connections.size + this.#live.size + this.#ended.count() === 0) this.#stopTimer()
  }

  #stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Ended sessions that a client may still resume for its last frames; the oldest are dropped first. */
function createEndedSessions(countMax: number) {
  const kept = new Map<string, { readonly session: SpeechSession; readonly chars: number }>()
  let totalChars = 0

  function dropWhile(shouldDrop: (oldest: SpeechSession) => boolean): void {
    for (const [id, { chars, session }] of kept) {
      if (!shouldDrop(session)) return
      kept.delete(id)
      totalChars -= chars
    }
  }

  return {
    add(session: SpeechSession) {
      const chars = session.outbox.logChars
      kept.set(session.id, { session, chars })
      totalChars += chars
      dropWhile(() => kept.size > countMax || totalChars > endedCharsMax)
    },
    find: (id: string) => kept.get(id)?.session,
    dropExpired: () => dropWhile((oldest) => oldest.isExpired()),
    count: () => kept.size,
    clear: () => dropWhile(() => true),
  }
}

/** The line of its first connection contains the session; one that is resumed has lines of its own. */
function reportEnding(session: SpeechSession, ending: SessionEnding): void {
  const { error, reason, stats } = ending
  const { context, handshake, query } = session.start
  const { metadata } = handshake
  const { exchange } = context
  if (exchange === undefined) return
  if (error !== null) exchange.error ??= exchangeErrorOf(error)
  exchange.workEnded({
    session_id: session.id,
    lang: query.language,
    encoding: query.encoding,
    session_end: reason,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    stats,
  })
}

function useOf({ start: { context, query } }: SpeechSession, ending: SessionEnding): SpeechUse {
  const { error, reason, stats } = ending
  const endedAtMs = performance.now()
  return {
    kind: 'speech_session',
    requestId: context.requestId,
    userId: context.principal.userId,
    keyId: context.keyId,
    requestedModel: query.engineName,
    engine: stats?.engine.name ?? null,
    outcome: error !== null ? 'failed' : reason === 'client_end' ? 'completed' : 'cancelled',
    errorKind: error?.code ?? null,
    audioMs: stats?.audio_ms ?? 0,
    durationMs: endedAtMs - context.receivedAtMs,
    endedAtMs,
  }
}
