import {
  type ObjectOptions,
  type Static,
  type TProperties,
  type TSchema,
  Type,
} from '@sinclair/typebox'
import { containers, encodings } from '#speech/decoders/decoder.ts'
import { languages } from '#speech/engine.ts'

/**
 * The text frames of the server. Points in time are seconds from the first sample of the session,
 * with three decimals; durations are whole milliseconds.
 */

const strict = <T extends TProperties>(fields: T, options: ObjectOptions = {}) =>
  Type.Object(fields, { additionalProperties: false, ...options })
const oneOf = <Value extends string>(values: readonly Value[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))
const count = () => Type.Integer({ minimum: 0 })
const seconds = () => Type.Number({ minimum: 0 })
const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

/** Frames are numbered 1, 2, 3 … within the session. */
const frame = <Name extends string, T extends TProperties>(
  type: Name,
  fields: T,
  options?: ObjectOptions,
) => strict({ type: Type.Literal(type), seq: Type.Integer({ minimum: 1 }), ...fields }, options)

const sessionStats = strict({
  received_bytes: count(),
  /** Received but not decoded before the session ended. */
  discarded_bytes: count(),
  audio_ms: count(),
  processed_ms: count(),
  processed_is_estimated: Type.Boolean(),
  silence_ms: count(),
  untranscribed_ms: count(),
  gaps: Type.Array(strict({ start: seconds(), end: seconds() })),
  wall_ms: count(),
  finals: count(),
  partials_sent: count(),
  partials_dropped: count(),
  words: count(),
  pauses: count(),
  paused_ms: count(),
  max_queued_ms: count(),
  max_lag_ms: count(),
  resumes: count(),
  faults: strict({
    clipped_samples: count(),
    invalid_samples: count(),
    corrupt_frames: count(),
    decode_gaps: count(),
  }),
  engine: strict({ name: Type.String(), sessions: count(), rollovers: count() }),
  latency_ms: strict({
    first_partial: nullable(count()),
    final_p50: nullable(count()),
    final_p95: nullable(count()),
  }),
})

const sessionReady = frame('session_ready', {
  protocol: Type.Literal(1),
  session_id: Type.String(),
  resumed: Type.Boolean(),
  /** Audio bytes received so far: a client that resumes continues from here. */
  received_bytes: count(),
  lang: oneOf(languages),
  engine: strict({
    name: Type.String(),
    features: strict({
      partials: Type.Boolean(),
      words: Type.Boolean(),
      confidence: Type.Boolean(),
      finalize: Type.Boolean(),
    }),
    /** What the engine lacks, and how the operator gets it. */
    notice: Type.Optional(Type.String()),
  }),
  audio: strict({
    encoding: oneOf(encodings),
    container: oneOf(containers),
    channels: Type.Integer(),
    sample_rate_hz: nullable(count()),
    engine_rate_hz: count(),
  }),
  limits: strict({
    max_frame_bytes: count(),
    max_session_ms: count(),
    idle_timeout_ms: count(),
    max_lag_ms: count(),
    resume_ms: count(),
  }),
  flow: strict({
    mode: oneOf(['none', 'credit']),
    credit_bytes: nullable(count()),
    ack_interval_ms: nullable(count()),
  }),
  /** Null if sessions cannot be resumed. */
  resume_token: nullable(Type.String()),
})

const audioAck = frame('audio_ack', {
  received_bytes: count(),
  /** How much audio the client may have sent in total since the session started. */
  credit_bytes: count(),
  received_ms: count(),
  processed_ms: count(),
  final_ms: count(),
})

const transcriptFields = {
  segment: count(),
  rev: count(),
  text: Type.String(),
  start: seconds(),
  end: seconds(),
}

const partial = frame(
  'transcript',
  { ...transcriptFields, is_final: Type.Literal(false), stable_text: Type.String() },
  { $id: 'PartialTranscript' },
)

const word = strict({
  word: Type.String(),
  start: seconds(),
  end: seconds(),
  confidence: nullable(seconds()),
})

const final = frame(
  'transcript',
  {
    ...transcriptFields,
    is_final: Type.Literal(true),
    speech_final: Type.Boolean(),
    confidence: nullable(seconds()),
    lang: oneOf(languages),
    words: Type.Optional(Type.Array(word)),
    from_finalize: nullable(Type.String()),
  },
  { $id: 'FinalTranscript' },
)

const details = Type.Record(Type.String(), Type.Unknown())

const errorFrame = frame('error', {
  fatal: Type.Literal(true),
  error: strict({
    code: Type.String(),
    message: Type.String(),
    param: nullable(Type.String()),
    retryable: Type.Boolean(),
    details,
  }),
  close_code: count(),
  /** Absent if the session was never ready. */
  stats: Type.Optional(sessionStats),
})

export const serverFrame = Type.Union(
  [
    sessionReady,
    audioAck,
    frame('speech_start', { at: seconds() }),
    partial,
    final,
    frame('finalized', { id: Type.String(), audio_ms: count() }),
    frame('warning', { code: Type.String(), message: Type.String(), details }),
    errorFrame,
    frame('session_end', { reason: Type.Literal('client_end'), stats: sessionStats }),
  ],
  { $id: 'SpeechServerFrame' },
)

export type ServerFrame = Static<typeof serverFrame>
export type SessionStats = Static<typeof sessionStats>

type WithoutSeq<Frame> = Frame extends unknown ? Omit<Frame, 'seq'> : never

/** A frame before it is numbered. */
export type UnsentFrame = WithoutSeq<ServerFrame>

/** Serialises a frame; its type and number come first. */
export function renderFrame(frame: UnsentFrame, seq: number): string {
  const { type, ...fields } = frame
  return JSON.stringify({ type, seq, ...fields })
}
