import type { Config } from '#config/schema.ts'
import type { Language } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'
import { createAdmission } from './admission.ts'
import { Connection, type ConnectionDeps, type Knock } from './connection.ts'
import { resumeFailed } from './faults.ts'
import { createAudioBudget } from './intake.ts'
import type { Ending } from './listening.ts'
import type { Wire } from './outbox.ts'
import { createPastSessions } from './past-sessions.ts'
import { SpeechSession } from './session.ts'
import type { TranscribingDeps } from './transcribing.ts'

/** The speech sessions of this process. */
export type SpeechSessions = {
  /** For a socket that was just upgraded: to be opened, and told what happens at the socket. */
  connect(knock: Knock, wire: Wire): Connection
  gauges(): SessionGauges
  /** Ends all of them now. */
  close(): void
}

type SessionGauges = {
  readonly connections: number
  /** Those that wait for their client are among them. */
  readonly sessions: number
  readonly waiting: number
  /** Audio of all sessions that is not decoded yet, now and at most. */
  readonly queuedBytes: number
  readonly queuedBytesPeak: number
  /** Frames that wait for clients to read them. */
  readonly unreadBytes: number
}

export type SpeechSessionsDeps = TranscribingDeps & {
  readonly config: Pick<Config, 'speech' | 'drain'>
  /** Those that some engine serves. */
  readonly languages: readonly Language[]
  readonly log: Log
}

/** How often deadlines are looked at: one timer for all sessions. */
const lookMs = 250
/** Frames of sessions that are over, kept for clients that have lost the last of them. */
const pastCharsMax = 16_777_216

export function createSpeechSessions(deps: SpeechSessionsDeps): SpeechSessions {
  const { config, log } = deps
  const settings = config.speech
  const budget = createAudioBudget(settings.queueTotalBytesMax)
  const connections = new Set<Connection>()
  const live = new Map<string, SpeechSession>()
  const past = createPastSessions({ countMax: settings.sessionsMax, charsMax: pastCharsMax })
  let timer: ReturnType<typeof setInterval> | null = null

  const { admit, refusal } = createAdmission({ settings, budget, connections, live })

  const begin: ConnectionDeps['begin'] = (start) => {
    const refused = refusal(start.userId)
    if (refused !== null) throw refused
    const session = new SpeechSession(
      { ...deps, settings, budget, drainMs: Math.min(settings.finalizeMs, config.drain.graceMs) },
      start,
      (ending) => retire(session, ending),
    )
    live.set(session.id, session)
    return session
  }

  const find: ConnectionDeps['find'] = (claim, claimant) => {
    const session = live.get(claim.sessionId) ?? past.find(claim.sessionId)
    if (session?.isClaimedBy(claim, claimant) === true) return session
    throw resumeFailed(claim.sessionId)
  }

  function retire(session: SpeechSession, ending: Ending): void {
    live.delete(session.id)
    logEnding(log, session, ending)
    if (session.isResumable()) past.add(session)
  }

  function look(): void {
    for (const connection of [...connections]) connection.look()
    for (const session of [...live.values()]) session.look()
    past.look()
    if (connections.size > 0 || live.size > 0 || past.count() > 0) return
    if (timer !== null) clearInterval(timer)
    timer = null
  }

  return {
    connect(knock, wire) {
      const closed = (connection: Connection) => connections.delete(connection)
      const connection = new Connection(
        { ...deps, settings, admit, begin, find, closed },
        knock,
        wire,
      )
      connections.add(connection)
      timer ??= setInterval(look, lookMs)
      return connection
    },
    gauges: () => ({
      connections: connections.size,
      sessions: live.size,
      waiting: [...live.values()].filter((session) => !session.isAttached()).length,
      queuedBytes: budget.queuedBytes(),
      queuedBytesPeak: budget.queuedBytesPeak(),
      unreadBytes: [...live.values()].reduce((sum, session) => sum + session.unreadBytes(), 0),
    }),
    close() {
      for (const session of [...live.values()]) session.abort('draining')
      past.clear()
      if (timer !== null) clearInterval(timer)
      timer = null
    },
  }
}

function logEnding(log: Log, { id, start }: SpeechSession, ending: Ending): void {
  const { error, reason, stats } = ending
  const level = error !== null && error.closeCode === 1011 ? 'warn' : 'info'
  log[level]('speech session ended', {
    request_id: start.requestId,
    session_id: id,
    lang: start.query.language,
    encoding: start.query.encoding,
    reason,
    close_code: ending.closeCode,
    ...(error?.cause === undefined ? {} : { cause: error.cause }),
    ...(Object.keys(start.handshake.metadata).length === 0
      ? {}
      : { metadata: start.handshake.metadata }),
    stats,
  })
}
