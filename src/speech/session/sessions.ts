import type { Config } from '#config/schema.ts'
import type { Language } from '#speech/engine.ts'
import type { OpenRecognition } from '#speech/recognition/recognition.ts'
import type { Log } from '#telemetry/log.ts'
import { AudioBudget } from './audio-queue.ts'
import { Connection, type ConnectionDeps, type UpgradeRequest } from './connection.ts'
import type { ClientSocket } from './outbox.ts'
import { SpeechSession } from './session.ts'
import { noCapacity, SessionError } from './session-error.ts'
import type { SessionEnding } from './transcriber.ts'

export type SpeechSessions = ReturnType<typeof createSpeechSessions>

export type SpeechSessionsDeps = {
  readonly config: Pick<Config, 'speech' | 'drain'>
  /** Languages that at least one engine serves. */
  readonly languages: readonly Language[]
  readonly log: Log
  readonly openRecognition: OpenRecognition
}

/** One timer checks the deadlines of all sessions. */
const tickMs = 250
/** Frames kept of ended sessions, for clients that have missed the last ones. */
const endedCharsMax = 16_777_216

/** The speech sessions of this process. */
export function createSpeechSessions(deps: SpeechSessionsDeps) {
  const { config, log } = deps
  const settings = config.speech
  const { sessionsMax, sessionsPerUserMax } = settings
  const budget = new AudioBudget(settings.queueTotalBytesMax)
  const connections = new Set<Connection>()
  const live = new Map<string, SpeechSession>()
  const ended = createEndedSessions(sessionsMax)
  let timer: ReturnType<typeof setInterval> | null = null

  const sessionsOf = (userId: string) =>
    [...live.values()].filter(({ start }) => start.context.principal.userId === userId).length
  const pendingOf = (userId: string) =>
    [...connections].filter((connection) => connection.pendingUserId() === userId).length

  /** Why this user cannot start a session; null if possible. */
  function refusal(userId: string): SessionError | null {
    if (live.size >= sessionsMax) return noCapacity('sessions')
    if (sessionsOf(userId) >= sessionsPerUserMax) return noCapacity('sessions_of_user')
    return budget.isExceeded() ? noCapacity('audio') : null
  }

  /** Before the handshake it is not known whether the client resumes a session. */
  function admit(userId: string | null): void {
    // One connection for each session, and as many that start or resume one.
    if (connections.size > sessionsMax * 2) throw noCapacity('sessions')
    if (userId === null) return
    if (pendingOf(userId) >= sessionsPerUserMax) throw noCapacity('sessions_of_user')
    const refused = refusal(userId)
    if (refused !== null && sessionsOf(userId) === 0) throw refused
  }

  const connectionDeps: ConnectionDeps = {
    settings,
    languages: deps.languages,
    log,
    admit,
    startSession(start) {
      const refused = refusal(start.context.principal.userId)
      if (refused !== null) throw refused
      const drainMs = Math.min(settings.finalizeMs, config.drain.graceMs)
      const session = new SpeechSession(
        { openRecognition: deps.openRecognition, settings, budget, drainMs },
        start,
        (ending) => onEnded(session, ending),
      )
      live.set(session.id, session)
      return session
    },
    findSession(resume, userId, query) {
      const session = live.get(resume.sessionId) ?? ended.find(resume.sessionId)
      if (session?.matches(resume, userId, query) === true) return session
      // The same error for every reason, so that it does not reveal which sessions exist.
      throw new SessionError('resume_failed', 'The session does not exist or has ended.', {
        details: { session_id: resume.sessionId },
      })
    },
    onClosed: (connection) => connections.delete(connection),
  }

  function onEnded(session: SpeechSession, ending: SessionEnding): void {
    live.delete(session.id)
    logEnding(log, session, ending)
    if (session.isResumable()) ended.add(session)
  }

  function tick(): void {
    for (const connection of [...connections]) connection.tick()
    for (const session of [...live.values()]) session.tick()
    ended.dropExpired()
    if (connections.size > 0 || live.size > 0 || ended.count() > 0) return
    if (timer !== null) clearInterval(timer)
    timer = null
  }

  return {
    /** Registers a socket after its upgrade. The caller opens it and forwards its events. */
    connect(request: UpgradeRequest, socket: ClientSocket): Connection {
      const connection = new Connection(connectionDeps, request, socket)
      connections.add(connection)
      timer ??= setInterval(tick, tickMs)
      return connection
    },
    metrics: () => ({
      connections: connections.size,
      /** Including those that wait for their client to resume. */
      sessions: live.size,
      waiting: [...live.values()].filter((session) => !session.isAttached()).length,
      /** Undecoded audio of all sessions, and its peak. */
      queuedBytes: budget.queuedBytes,
      queuedBytesPeak: budget.queuedBytesPeak,
      /** Frames that clients have not read. */
      unreadBytes: [...live.values()].reduce((sum, session) => sum + session.unreadBytes(), 0),
    }),
    /** Ends all sessions immediately. */
    close() {
      for (const session of [...live.values()]) session.abort('draining')
      ended.clear()
      if (timer !== null) clearInterval(timer)
      timer = null
    },
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
      const chars = session.logChars()
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

function logEnding(log: Log, { id, start }: SpeechSession, ending: SessionEnding): void {
  const { error, reason, stats } = ending
  const { metadata } = start.handshake
  const level = error !== null && error.closeCode === 1011 ? 'warn' : 'info'
  log[level]('speech session ended', {
    request_id: start.context.requestId,
    session_id: id,
    lang: start.query.language,
    encoding: start.query.encoding,
    reason,
    close_code: ending.closeCode,
    ...(error?.cause === undefined ? {} : { cause: error.cause }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    stats,
  })
}
