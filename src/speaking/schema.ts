import { type Static, Type } from '@sinclair/typebox'
import { createReaders } from '#api/read-object.ts'
import { nonEmptyString, object, optional } from '#api/request-schema.ts'
import { type SpeakInput, speechFormats } from '#inference/speak.ts'
import { AppError } from '#lib/errors.ts'

const nameCharsMax = 256
const instructionsCharsMax = 4_096

/** OpenAI's request. Unknown fields are ignored. */
export const speakBody = object(
  {
    model: optional(nonEmptyString('A model of mode `speak`. Required without `agent`.')),
    agent: optional(
      nonEmptyString(
        'An agent that has a voice: what the request leaves out is as the agent says.',
      ),
    ),
    input: nonEmptyString('The text to speak; `speech.speak_chars_max` limits it.'),
    voice: optional(
      Type.Union(
        [
          Type.String({ minLength: 1, maxLength: nameCharsMax }),
          Type.Object({ id: Type.String({ minLength: 1, maxLength: nameCharsMax }) }),
        ],
        { description: 'A voice that the upstream knows. Required without `agent`.' },
      ),
    ),
    response_format: optional(
      Type.Union(
        speechFormats.map((format) => Type.Literal(format)),
        { default: 'mp3', description: 'Passed to the upstream, which may not know all of them.' },
      ),
    ),
    speed: optional(Type.Number({ minimum: 0.25, maximum: 4, default: 1 })),
    instructions: optional(
      Type.String({ maxLength: instructionsCharsMax, description: 'How to speak.' }),
    ),
    stream_format: optional(
      Type.Union([Type.Literal('audio'), Type.Literal('sse')], {
        default: 'audio',
        description: 'Whether audio is sent as bytes or as events.',
      }),
    ),
  },
  { $id: 'SpeechRequest' },
)

/** With an agent, which has what is missing, or with a model and a voice. */
export type SpeechRequest = {
  readonly agent: string | null
  readonly model: string | null
  readonly voice: SpeakInput['voice'] | null
  readonly input: Omit<SpeakInput, 'voice'>
  readonly sendsEvents: boolean
}

export const speechEvent = Type.Union(
  [
    Type.Object({ type: Type.Literal('speech.audio.delta'), audio: Type.String() }),
    Type.Object({
      type: Type.Literal('speech.audio.done'),
      usage: Type.Object({
        input_tokens: Type.Integer({ description: 'Characters of the input.' }),
        output_tokens: Type.Integer(),
        total_tokens: Type.Integer(),
      }),
    }),
    Type.Object({ type: Type.Literal('error'), error: Type.Unknown() }),
  ],
  { $id: 'SpeechAudioEvent' },
)
export type SpeechEvent = Static<typeof speechEvent>

const { readObject } = createReaders(invalid)

/** Throws `invalid_request` with the invalid field as `param`. */
export function readSpeechRequest(body: unknown, inputCharsMax: number): SpeechRequest {
  const fields = readObject(speakBody, body, '')
  const { agent = null, model = null, input, speed, instructions } = fields
  const { response_format: format = 'mp3' } = fields
  if (agent === null && model === null) throw invalid('model', 'is required')
  if (agent === null && fields.voice === undefined) throw invalid('voice', 'is required')
  if (input.trim() === '') throw invalid('input', 'must be a text that is not blank')
  if (input.length > inputCharsMax) {
    throw invalid('input', `may have at most ${inputCharsMax} characters`)
  }
  return {
    agent,
    model,
    voice: fields.voice === undefined ? null : readVoice(fields.voice),
    input: {
      text: input,
      format,
      ...(speed === undefined ? {} : { speed }),
      ...(instructions === undefined ? {} : { instructions }),
    },
    sendsEvents: fields.stream_format === 'sse',
  }
}

function readVoice(voice: string | { readonly id?: unknown }): SpeakInput['voice'] {
  return typeof voice === 'string' ? voice : { id: String(voice.id) }
}

/** `predicate` completes the sentence that begins with the field. */
function invalid(param: string, predicate: string): AppError {
  if (param === '') return new AppError('invalid_request', `The request body ${predicate}.`)
  return new AppError('invalid_request', `${param} ${predicate}.`, { param })
}
