import { type Static, Type } from '@sinclair/typebox'

/** The responses of `POST /v1/audio/transcriptions`. Times are seconds. */

const span = { start: Type.Number(), end: Type.Number() }

const usage = Type.Object({
  type: Type.Literal('duration'),
  seconds: Type.Number({ description: 'The duration of the audio.' }),
})

const missing = {
  untranscribed_ms: Type.Optional(
    Type.Integer({
      description:
        'Speech lost in engine failures and audio missing in the file; absent if none was.',
    }),
  ),
  gaps: Type.Optional(Type.Array(Type.Object(span), { description: 'The lost spans.' })),
}

const warnings = Type.Optional(
  Type.Array(Type.Object({ code: Type.String(), message: Type.String() }), {
    description: 'Why the transcript ends before the audio; absent if it is complete.',
  }),
)

const logprobs = Type.Array(
  Type.Object({
    token: Type.String(),
    logprob: Type.Number(),
    bytes: Type.Array(Type.Integer()),
  }),
  { description: 'Log probabilities of words, if the engine reports confidences.' },
)

export const transcription = Type.Object(
  { text: Type.String(), logprobs: Type.Optional(logprobs), usage, ...missing, warnings },
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
  seek: Type.Integer({ description: 'The position in frames of ten milliseconds.' }),
  ...span,
  text: Type.String(),
  tokens: Type.Array(Type.Integer()),
  temperature: Type.Number(),
  avg_logprob: Type.Number(),
  compression_ratio: Type.Number(),
  no_speech_prob: Type.Number(),
})

export const verboseTranscription = Type.Object(
  {
    task: Type.Literal('transcribe'),
    language: Type.String(),
    duration: Type.Number(),
    text: Type.String(),
    words: Type.Optional(Type.Array(word)),
    segments: Type.Optional(Type.Array(segment)),
    usage,
    untranscribed_ms: Type.Integer({
      description: 'Speech lost in engine failures and audio missing in the file.',
    }),
    gaps: Type.Array(Type.Object(span), { description: 'The lost spans.' }),
    warnings,
  },
  { $id: 'VerboseTranscription' },
)
export type VerboseTranscription = Static<typeof verboseTranscription>

export const transcriptionEvent = Type.Union(
  [
    Type.Object({
      type: Type.Literal('transcript.text.delta'),
      delta: Type.String({ description: 'Empty in a heartbeat.' }),
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
      ...missing,
      warnings,
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
