import { toAppError } from '#lib/errors.ts'
import { AudioError } from '#speech/decoders/decoder.ts'
import { EngineError } from '#speech/engine.ts'
import type { RecognitionFailure } from '#speech/recognition/recognition.ts'
import { SessionError } from './session-error.ts'
import type { Verdict } from './watch.ts'

/** What goes wrong in and around a session, as its client is told. */

/** After how long a client may try again where all places are taken. */
const capacityRetryMs = 1_000

export function noCapacity(limit: 'sessions' | 'sessions_of_user' | 'audio' | 'engine') {
  return new SessionError('capacity', 'There is no room for another session now.', {
    details: { limit, retry_after_ms: capacityRetryMs },
  })
}

export function engineFault(cause: unknown): SessionError {
  if (cause instanceof EngineError && cause.kind === 'busy') return noCapacity('engine')
  return new SessionError('engine_failed', failureSentences.engine_failed, { cause })
}

/** What a decoder threw, as callers are told of it. */
export function audioFault(cause: unknown): SessionError {
  if (cause instanceof AudioError) {
    return new SessionError(cause.code, cause.message, { details: cause.details })
  }
  return new SessionError('internal_error', 'The audio could not be processed.', { cause })
}

export function recognitionFault(code: RecognitionFailure): SessionError {
  return new SessionError(code, failureSentences[code])
}

const failureSentences: Record<RecognitionFailure, string> = {
  engine_failed: 'No speech engine can serve this session now.',
  engine_stalled: 'The speech engine made no progress for too long.',
  finalize_timeout: 'The last results did not come in time.',
}

/** Anything thrown before there was a session. */
export function callerFault(cause: unknown): SessionError {
  const { message, status } = toAppError(cause)
  if (status === 401) return new SessionError('unauthorized', message)
  if (status === 403) return new SessionError('permission_denied', message)
  if (status === 503) return new SessionError('unavailable', message, { cause })
  return new SessionError('internal_error', message, { cause })
}

export function handshakeTimeout(handshakeMs: number): SessionError {
  const sentence = `The first message did not come within ${handshakeMs} ms.`
  return new SessionError('handshake_timeout', sentence)
}

export function tooLarge(lengthMax: number): SessionError {
  const sentence = `A message of this kind may have ${lengthMax} bytes at most.`
  return new SessionError('frame_too_large', sentence, { details: { max: lengthMax } })
}

export function tooManyFinalizes(finalizesMax: number): SessionError {
  const sentence = `No more than ${finalizesMax} requests to finalize may wait.`
  return new SessionError('flow_violation', sentence)
}

export function internalFault(cause: unknown): SessionError {
  return new SessionError('internal_error', 'The server failed to handle this session.', { cause })
}

export function draining(): SessionError {
  return new SessionError('draining', 'The server is shutting down.')
}

type Fault = Exclude<Verdict, 'client_lost'>

export function verdictFault(verdict: Fault): SessionError {
  return new SessionError(verdict, verdictSentences[verdict])
}

const verdictSentences: Record<Fault, string> = {
  idle_timeout: 'Neither audio nor a keepalive came for too long.',
  max_session: 'The session has lasted as long as one may; begin another.',
  slow_consumer: 'The client does not read what it is sent.',
  finalize_timeout: 'The last results did not come in time.',
}

/** One answer for all of it: nobody learns which sessions exist. */
export function resumeFailed(sessionId: string): SessionError {
  const sentence = 'There is no such session to go on with, or it is over.'
  return new SessionError('resume_failed', sentence, { details: { session_id: sessionId } })
}
