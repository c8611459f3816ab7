import { Type } from '@sinclair/typebox'
import type { AppError } from '#lib/errors.ts'
import { invalidField, messages } from './errors.ts'

const responseFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const

const vocabularyMax = 256
const wordCharsMax = 128
const granularities = ['word', 'segment'] as const
const inclusions = ['logprobs'] as const

/** The form as documented. Lists are also accepted without `[]`. */
export const transcriptionForm = Type.Object({
  file: Type.String({ format: 'binary', description: 'WAV, MP3, or Opus in Ogg or WebM.' }),
  model: Type.String({
    description:
      'The name of an engine, or a name such as `stt` that selects an engine by language.',
  }),
  language: Type.Optional(Type.String({ description: 'An ISO 639-1 code.', default: 'en' })),
  prompt: Type.Optional(
    Type.String({ description: 'A text in the style of the audio; its words are likely words.' }),
  ),
  'keywords[]': Type.Optional(
    Type.Array(Type.String({ maxLength: wordCharsMax }), {
      description: `Likely words and phrases. Together with those of the prompt, ${vocabularyMax} are used.`,
    }),
  ),
  temperature: Type.Optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'Has no effect: engines choose it.' }),
  ),
  response_format: Type.Optional(
    Type.Union(
      responseFormats.map((format) => Type.Literal(format)),
      { default: 'json' },
    ),
  ),
  stream: Type.Optional(Type.Boolean({ default: false })),
  'timestamp_granularities[]': Type.Optional(
    Type.Array(Type.Union(granularities.map((name) => Type.Literal(name))), {
      description: 'What `verbose_json` contains besides the text.',
      default: ['segment'],
    }),
  ),
  'include[]': Type.Optional(
    Type.Array(Type.Union(inclusions.map((name) => Type.Literal(name))), {
      description: '`logprobs`: log probabilities of words.',
    }),
  ),
})

type FormValues = ReadonlyMap<string, readonly string[]>

export type TranscriptionRequest = ReturnType<typeof readTranscriptionRequest>

/** The error of a file in another field than `file`, or of a second one. */
export function misplacedFile(field: string, hasFile: boolean): AppError {
  const isText = field !== 'file' && Object.keys(transcriptionForm.properties).includes(field)
  if (isText) return invalidField(bareName(field), `"${field}" must be a text, not a file.`)
  return hasFile ? invalidField(field, messages.oneFile) : invalidField('file', messages.noFile)
}

/** Validates a form; unknown fields are ignored. Throws `invalid_request` with the name of the field. */
export function readTranscriptionRequest(values: FormValues) {
  const model = lastOf(values, 'model')
  if (model === null) throw invalidField('model', '"model" is required.')
  const format = lastOf(values, 'response_format') ?? 'json'
  // Some clients write booleans as Python does.
  const stream = (lastOf(values, 'stream') ?? 'false').toLowerCase()
  const included = listOf(values, 'timestamp_granularities', granularities)
  requireTemperature(lastOf(values, 'temperature'))
  return {
    model,
    /** As sent; whether an engine serves it is checked later. */
    language: lastOf(values, 'language') ?? 'en',
    /** Likely words and phrases. */
    vocabulary: readVocabulary(values),
    format: oneOf(format, 'response_format', responseFormats),
    streams: oneOf(stream, 'stream', ['true', 'false']) === 'true',
    /** What `verbose_json` contains besides the text. */
    includes: {
      words: included.includes('word'),
      segments: included.length === 0 || included.includes('segment'),
    },
    includesLogprobs: listOf(values, 'include', inclusions).includes('logprobs'),
  }
}

/** An empty field counts as absent. */
function lastOf(values: FormValues, name: string): string | null {
  return values.get(name)?.at(-1)?.trim() || null
}

/** SDKs append brackets to the names of lists. */
function textsOf(values: FormValues, name: string): string[] {
  return [...(values.get(`${name}[]`) ?? []), ...(values.get(name) ?? [])]
}

function bareName(field: string): string {
  return field.replace('[]', '')
}

function listOf<T extends string>(values: FormValues, name: string, choices: readonly T[]): T[] {
  return textsOf(values, name).map((value) => oneOf(value, name, choices))
}

function requireTemperature(text: string | null): void {
  const temperature = Number(text ?? 0)
  if (temperature >= 0 && temperature <= 1) return
  throw invalidField('temperature', '"temperature" must be a number from 0 to 1.')
}

function readVocabulary(values: FormValues): string[] {
  const prompt = lastOf(values, 'prompt') ?? ''
  const words = prompt.match(/[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu) ?? []
  const phrases = textsOf(values, 'keywords').map((phrase) => phrase.trim())
  if (phrases.some(({ length }) => length > wordCharsMax)) {
    throw invalidField('keywords', `A keyword may have at most ${wordCharsMax} characters.`)
  }
  const usable = [...phrases, ...words].filter(({ length }) => length > 0 && length <= wordCharsMax)
  return [...new Set(usable)].slice(0, vocabularyMax)
}

function oneOf<T extends string>(value: string, name: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value)
  if (found !== undefined) return found
  throw invalidField(name, `"${name}" must be one of ${choices.join(', ')}.`)
}
