import { type Static, Type } from '@sinclair/typebox'

/** What `POST /v1/audio/transcriptions` answers with. Times are seconds. */

const span = { start: Type.Number(), end: Type.Number() }

const usage = Type.Object({
  type: Type.Literal('duration'),
  seconds: Type.Number({ description: 'Of audio.' }),
})

const missing = Type.Object({
  untranscribed_ms: Type.Optional(
    Type.Integer({ description: 'Speech that was lost with its engine; absent where none was.' }),
  ),
  gaps: Type.Optional(Type.Array(Type.Object(span), { description: 'Where it was.' })),
})
export type Missing = Static<typeof missing>

const logprobs = Type.Array(
  Type.Object({
    token: Type.String(),
    logprob: Type.Number(),
    bytes: Type.Array(Type.Integer()),
  }),
  { description: 'Of words, as far as the engine tells their chances.' },
)
export type Logprobs = Static<typeof logprobs>

export const transcription = Type.Object(
  { text: Type.String(), logprobs: Type.Optional(logprobs), usage, ...missing.properties },
  { $id: 'Transcription' },
)
export type Transcription = Static<typeof transcription>

const word = Type.Object({
  word: Type.String(),
  ...span,
  confidence: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
})

const segment = Type.Object({
  id: Type.Integer(),
  seek: Type.Integer({ description: 'In frames of ten milliseconds.' }),
  ...span,
  text: Type.String(),
  tokens: Type.Array(Type.Integer()),
  temperature: Type.Number(),
  avg_logprob: Type.Number(),
  compression_ratio: Type.Number(),
  no_speech_prob: Type.Number(),
})
export type TranscriptionWord = Static<typeof word>
export type TranscriptionSegment = Static<typeof segment>

export const verboseTranscription = Type.Object(
  {
    task: Type.Literal('transcribe'),
    language: Type.String(),
    duration: Type.Number(),
    text: Type.String(),
    words: Type.Optional(Type.Array(word)),
    segments: Type.Optional(Type.Array(segment)),
    usage,
    untranscribed_ms: Type.Integer({ description: 'Speech that was lost with its engine.' }),
    gaps: Type.Array(Type.Object(span), { description: 'Where it was.' }),
  },
  { $id: 'VerboseTranscription' },
)
export type VerboseTranscription = Static<typeof verboseTranscription>

export const transcriptionEvent = Type.Union(
  [
    Type.Object({
      type: Type.Literal('transcript.text.delta'),
      delta: Type.String({ description: 'Empty: a sign of life.' }),
      logprobs: Type.Optional(logprobs),
    }),
    Type.Object({
      type: Type.Literal('transcript.text.segment'),
      id: Type.String(),
      ...span,
      text: Type.String(),
      speaker: Type.String(),
    }),
    Type.Object({
      type: Type.Literal('transcript.text.done'),
      text: Type.String(),
      logprobs: Type.Optional(logprobs),
      usage,
      ...missing.properties,
    }),
    Type.Object({
      type: Type.Literal('error'),
      error: Type.Object({
        message: Type.String(),
        type: Type.String(),
        param: Type.Union([Type.String(), Type.Null()]),
        code: Type.String(),
      }),
    }),
  ],
  { $id: 'TranscriptionEvent' },
)
export type TranscriptionEvent = Static<typeof transcriptionEvent>
