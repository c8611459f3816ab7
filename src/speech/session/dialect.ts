import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Control, Handshake } from './client-frames.ts'
import type { SessionQuery } from './query.ts'
import type { UnsentFrame } from './server-frames.ts'

/**
 * Another WebSocket protocol for the same sessions: translates the messages of one connection. It has
 * no session, queue or timer of its own.
 */
export type Dialect = {
  /** The longest text message, in characters. */
  readonly textCharsMax: number
  /** How long the client may send nothing; null: as configured. */
  readonly idleMs: number | null
  /** Whether clients end a session by closing the socket. */
  readonly endsByClosing: boolean
  /** The client is authorised. May throw a `SessionError`, like `receive`. */
  open(): void
  receive(message: string | Uint8Array): void
  /** Messages for a frame of the session, or for the error of a connection without one. */
  render(frame: UnsentFrame): readonly string[]
  /** The code and reason of the close frame. */
  closing(closeCode: number, reason: string): { readonly code: number; readonly reason: string }
}

/** What a dialect does with its connection. */
export type DialectLink = {
  readonly principal: () => RequestPrincipal
  /** Sends a message beside those of the session. */
  send(text: string): void
  /** Starts the session, once. Throws a `SessionError`. */
  start(start: { readonly query: SessionQuery; readonly handshake: Handshake }): void
  /** Audio or a control message for the session. */
  input(message: Uint8Array | Control): void
  /** Closes a connection without a session. */
  finish(): void
}

export type OpenDialect = (link: DialectLink) => Dialect

/** What a dialect asks for; the rest of a handshake has no counterpart in other protocols. */
export type DialectStart = Pick<SessionQuery, 'language' | 'engineName'> & {
  readonly format: Handshake['format']
  readonly partials: boolean
  readonly progress: boolean
  readonly endpointingMs: number
  readonly vocabulary: readonly string[]
}

/** Updates that a client of another protocol receives per second at most. */
const partialsPerSecondMax = 10
/** The range of native sessions. */
const endpointingMsMin = 100
const endpointingMsMax = 10_000

export function renderStart(start: DialectStart): { query: SessionQuery; handshake: Handshake } {
  const { language, engineName, format, partials, progress, vocabulary } = start
  const { encoding, sampleRateHz } = format
  return {
    query: { language, engineName, encoding, sampleRateHz, ignored: [] },
    handshake: {
      format,
      options: {
        partials,
        words: true,
        partialsPerSecondMax,
        endpointingMs: Math.min(endpointingMsMax, Math.max(endpointingMsMin, start.endpointingMs)),
        vocabulary: [...vocabulary],
        credit: false,
        progress,
        live: true,
      },
      resume: null,
      metadata: {},
      ignored: [],
    },
  }
}
