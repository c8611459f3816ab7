import { toAppError } from '#lib/errors.ts'
import type { ExchangeError } from '#lib/exchange.ts'
import { AudioError } from '#speech/decoders/decoder.ts'
import { EngineError } from '#speech/engine.ts'
import type { RecognitionFailure } from '#speech/recognition/recognition.ts'

/** Error codes with the close code of the socket and whether the client may retry. */
const kinds = {
  // Query
  deprecated_parameter: { closeCode: 1008, retryable: false },
  unsupported_language: { closeCode: 1008, retryable: false },
  unsupported_encoding: { closeCode: 1008, retryable: false },
  engine_not_found: { closeCode: 1008, retryable: false },
  missing_parameter: { closeCode: 1008, retryable: false },
  invalid_parameter: { closeCode: 1008, retryable: false },
  // Credential
  unauthorized: { closeCode: 1008, retryable: false },
  permission_denied: { closeCode: 1008, retryable: false },
  // Messages
  handshake_required: { closeCode: 1008, retryable: false },
  handshake_timeout: { closeCode: 1008, retryable: false },
  invalid_handshake: { closeCode: 1008, retryable: false },
  invalid_message: { closeCode: 1008, retryable: false },
  frame_too_large: { closeCode: 1009, retryable: false },
  flow_violation: { closeCode: 1008, retryable: false },
  resume_failed: { closeCode: 1008, retryable: false },
  session_taken_over: { closeCode: 1008, retryable: false },
  slow_consumer: { closeCode: 1008, retryable: false },
  idle_timeout: { closeCode: 1008, retryable: true },
  max_session: { closeCode: 1008, retryable: true },
  // Audio
  wrong_encoding: { closeCode: 1008, retryable: false },
  unsupported_container: { closeCode: 1008, retryable: false },
  unsupported_audio: { closeCode: 1008, retryable: false },
  bad_audio: { closeCode: 1008, retryable: false },
  // Server and engine
  capacity: { closeCode: 1013, retryable: true },
  unavailable: { closeCode: 1013, retryable: true },
  draining: { closeCode: 1001, retryable: true },
  engine_failed: { closeCode: 1011, retryable: true },
  engine_stalled: { closeCode: 1011, retryable: true },
  finalize_timeout: { closeCode: 1011, retryable: true },
  internal_error: { closeCode: 1011, retryable: true },
} satisfies Record<string, { closeCode: number; retryable: boolean }>

export type SessionErrorCode = keyof typeof kinds

type SessionErrorOptions = {
  /** The parameter or field at fault. */
  readonly param?: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly cause?: unknown
}

/** Ends a session or prevents it from starting. `message` is public. */
export class SessionError extends Error {
  override readonly name = 'SessionError'
  readonly code: SessionErrorCode
  readonly closeCode: number
  readonly retryable: boolean
  readonly param: string | null
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: SessionErrorCode, publicMessage: string, options: SessionErrorOptions = {}) {
    super(publicMessage, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.closeCode = kinds[code].closeCode
    this.retryable = kinds[code].retryable
    this.param = options.param ?? null
    this.details = options.details ?? {}
  }

  /** The code; for the renamed parameter, which old clients send, the error itself. */
  closeReason(): string {
    if (this.code !== 'deprecated_parameter') return this.code
    const { code, param, details } = this
    const reason = JSON.stringify({ code, param, ...details })
    return Buffer.byteLength(reason) <= closeReasonBytesMax ? reason : code
  }
}

/** The maximum of the WebSocket protocol. */
const closeReasonBytesMax = 123

/** When a client may retry after a capacity limit. */
const capacityRetryMs = 1_000

export function noCapacity(limit: 'sessions' | 'sessions_of_user' | 'audio' | 'engine') {
  return new SessionError('capacity', 'The server has no capacity for another session; retry.', {
    details: { limit, retry_after_ms: capacityRetryMs },
  })
}

export function fromEngineError(cause: unknown): SessionError {
  if (cause instanceof EngineError && cause.kind === 'busy') return noCapacity('engine')
  return sessionError('engine_failed', cause)
}

/** What declares something else than the audio contains. */
const faultyFields: Partial<Record<SessionErrorCode, string>> = {
  wrong_encoding: 'encoding',
  unsupported_container: 'audio.container',
}

export function fromDecoderError(cause: unknown): SessionError {
  if (cause instanceof AudioError) {
    const param = faultyFields[cause.code]
    return new SessionError(cause.code, cause.message, {
      details: cause.details,
      ...(param !== undefined && { param }),
    })
  }
  return new SessionError('internal_error', 'The audio could not be processed.', { cause })
}

/** Any error thrown before the session exists. */
export function fromRequestError(cause: unknown): SessionError {
  const { message, status, retryAfterS } = toAppError(cause)
  if (status === 401) return new SessionError('unauthorized', message)
  if (status === 403) return new SessionError('permission_denied', message)
  if (status === 429) {
    const details = retryAfterS === undefined ? {} : { retry_after_ms: retryAfterS * 1_000 }
    return new SessionError('capacity', message, { details })
  }
  if (status === 503) return new SessionError('unavailable', message, { cause })
  return new SessionError('internal_error', message, { cause })
}

/** From close code 1011 on the client is not to blame. */
const serverFault = { closeCode: 1011, status: 503 }

/** The error as the log line of its connection has it. */
export function exchangeErrorOf({ code, message, closeCode, cause }: SessionError): ExchangeError {
  const status = closeCode >= serverFault.closeCode ? serverFault.status : 400
  return { kind: code, message, status, cause }
}

const messages = {
  engine_failed: 'No speech engine is available for this session.',
  engine_stalled: 'The speech engine made no progress for too long.',
  finalize_timeout: 'The last results did not arrive in time.',
  idle_timeout: 'Neither audio nor a keepalive arrived for too long.',
  max_session: 'The session reached its maximum duration; start another one.',
  slow_consumer: 'The client does not read its frames fast enough.',
  draining: 'The server is shutting down.',
  handshake_required: 'The first message must be a JSON object of type "session_start".',
  internal_error: 'The server failed to process this session.',
  session_taken_over: 'Another connection has resumed this session.',
} as const satisfies Partial<Record<SessionErrorCode, string>> & Record<RecognitionFailure, string>

/** An error whose code determines its message. */
export function sessionError(code: keyof typeof messages, cause?: unknown): SessionError {
  const param = code === 'handshake_required' ? 'type' : undefined
  return new SessionError(code, messages[code], { cause, ...(param !== undefined && { param }) })
}
