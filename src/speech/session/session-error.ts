/** Why a session is refused or ends early: the code that callers see, and how its socket closes. */
const kinds = {
  // The query
  deprecated_parameter: { closeCode: 1008, retryable: false },
  unsupported_language: { closeCode: 1008, retryable: false },
  unsupported_encoding: { closeCode: 1008, retryable: false },
  missing_parameter: { closeCode: 1008, retryable: false },
  invalid_parameter: { closeCode: 1008, retryable: false },
  // Who is calling
  unauthorized: { closeCode: 1008, retryable: false },
  permission_denied: { closeCode: 1008, retryable: false },
  // The messages
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
  // The audio
  wrong_encoding: { closeCode: 1008, retryable: false },
  unsupported_container: { closeCode: 1008, retryable: false },
  unsupported_audio: { closeCode: 1008, retryable: false },
  bad_audio: { closeCode: 1008, retryable: false },
  // Ourselves, and the engine
  capacity: { closeCode: 1013, retryable: true },
  unavailable: { closeCode: 1013, retryable: true },
  draining: { closeCode: 1001, retryable: true },
  engine_failed: { closeCode: 1011, retryable: true },
  engine_stalled: { closeCode: 1011, retryable: true },
  finalize_timeout: { closeCode: 1011, retryable: true },
  internal_error: { closeCode: 1011, retryable: true },
} satisfies Record<string, { closeCode: number; retryable: boolean }>

export type SessionErrorCode = keyof typeof kinds

type ErrorDetails = {
  /** The parameter or field at fault. */
  readonly param?: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly cause?: unknown
}

/** What ends a session or keeps it from beginning; `message` is public. */
export class SessionError extends Error {
  override readonly name = 'SessionError'
  readonly code: SessionErrorCode
  readonly closeCode: number
  readonly retryable: boolean
  readonly param: string | null
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: SessionErrorCode, publicMessage: string, more: ErrorDetails = {}) {
    super(publicMessage, more.cause === undefined ? undefined : { cause: more.cause })
    this.code = code
    this.closeCode = kinds[code].closeCode
    this.retryable = kinds[code].retryable
    this.param = more.param ?? null
    this.details = more.details ?? {}
  }
}
