import type { Config } from '#config/schema.ts'
import type {
  Recognition,
  RecognitionEvent,
  RecognitionStats,
} from '#speech/recognition/recognition.ts'
import type { ClientAudio } from './client-audio.ts'
import type { Handshake } from './client-frames.ts'
import type { Outbox } from './outbox.ts'
import type { SessionQuery } from './query.ts'
import {
  renderReady,
  renderSessionError,
  renderStats,
  renderTranscript,
  type SessionCounts,
  toSeconds,
  whole,
} from './render-frames.ts'
import type { SessionStats } from './server-frames.ts'
import type { SessionError } from './session-error.ts'
import type { Transcribing } from './transcribing.ts'

/** What one session tells its client. */
export type Reports = {
  ready(recognition: Recognition, isResumed: boolean): void
  warn(code: keyof typeof warnings, details: Readonly<Record<string, unknown>>): void
  hear(event: ToldEvent): void
  acknowledge(recognition: Recognition): void
  /** With what is known of a session that was ready. */
  failed(error: SessionError, known: KnownStats | null): SessionStats | null
  ended(known: KnownStats): SessionStats
  /** Tells nothing. */
  count(known: KnownStats): SessionStats
}

type ToldEvent = Extract<
  RecognitionEvent,
  { type: 'speech-start' | 'transcript' | 'finalized' | 'warning' }
>

type KnownStats = {
  readonly stats: RecognitionStats
  readonly transcribing: Transcribing
  readonly counts: Pick<SessionCounts, 'wallMs' | 'queuedMsMax' | 'resumes'>
}

const warnings = {
  unknown_fields: 'The handshake has parameters or fields that mean nothing here.',
  frames_forgotten: 'Not all frames that were missed could be kept.',
}

export function createReports(session: {
  readonly id: string
  readonly query: SessionQuery
  readonly handshake: Handshake
  readonly resumeToken: string | null
  readonly settings: Config['speech']
  readonly outbox: Outbox
  readonly audio: ClientAudio
}): Reports {
  const { audio, handshake, outbox, query } = session

  function statsOf({ counts, stats, transcribing }: KnownStats): SessionStats {
    const { partials } = outbox
    const { faults } = transcribing.decoder
    return renderStats(stats, { ...audio.counts(), ...counts, partials, faults })
  }

  return {
    ready(recognition, isResumed) {
      const { language } = query
      const { receivedBytes } = audio.counts()
      const creditBytes = audio.creditBytes()
      const now = { language, recognition, isResumed, receivedBytes, creditBytes }
      outbox.push(renderReady({ ...session, ...now }))
    },
    warn(code, details) {
      outbox.push({ type: 'warning', code, message: warnings[code], details })
    },
    hear(event) {
      switch (event.type) {
        case 'speech-start':
          outbox.push({ type: 'speech_start', at: toSeconds(event.atMs) })
          break
        case 'finalized':
          outbox.push({ type: 'finalized', id: event.id, audio_ms: whole(event.audioMs) })
          break
        case 'warning':
          outbox.push({ ...event, details: { ...event.details } })
          break
        case 'transcript': {
          const { words } = handshake.options
          outbox.push(renderTranscript(event, { language: query.language, words }))
        }
      }
    },
    acknowledge(recognition) {
      const frame = audio.acknowledge(() => recognition.progress())
      if (frame !== null) outbox.push(frame)
    },
    failed(error, known) {
      const stats = known === null ? null : statsOf(known)
      outbox.push(renderSessionError(error, stats))
      return stats
    },
    ended(known) {
      const stats = statsOf(known)
      outbox.push({ type: 'session_end', reason: 'client_end', stats })
      return stats
    },
    count: statsOf,
  }
}
