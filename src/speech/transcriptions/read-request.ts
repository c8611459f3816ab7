import { Type } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'

/** What an answer without streaming looks like. */
const answerForms = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const

type AnswerForm = (typeof answerForms)[number]

/** What the fields of a form ask for; those that mean nothing here are ignored. */
export type TranscriptionRequest = {
  readonly model: string
  /** As it was sent: whether an engine serves it is not known here. */
  readonly language: string
  /** Words that are likely to be said. */
  readonly vocabulary: readonly string[]
  readonly form: AnswerForm
  readonly streams: boolean
  /** What `verbose_json` holds beside the text. */
  readonly holds: { readonly words: boolean; readonly segments: boolean }
  readonly wantsLogprobs: boolean
}

const vocabularyMax = 256
const wordCharsMax = 128
const granularities = ['word', 'segment'] as const

const granularity = () => Type.Union(granularities.map((word) => Type.Literal(word)))

/** The form as it is documented. Other fields are ignored; a list may also be named without `[]`. */
export const transcriptionForm = Type.Object({
  file: Type.String({ format: 'binary', description: 'WAV, MP3, or Opus in Ogg or WebM.' }),
  model: Type.String({
    description:
      'The name of an engine, or one such as `stt`: the engine that serves the language.',
  }),
  language: Type.Optional(Type.String({ description: 'An ISO 639-1 code.', default: 'en' })),
  prompt: Type.Optional(
    Type.String({ description: 'A text in the style of what is said; its words may be said too.' }),
  ),
  'keywords[]': Type.Optional(
    Type.Array(Type.String({ maxLength: wordCharsMax }), {
      description: `Words that are likely to be said. With those of the prompt, ${vocabularyMax} count.`,
    }),
  ),
  response_format: Type.Optional(
    Type.Union(
      answerForms.map((form) => Type.Literal(form)),
      { default: 'json' },
    ),
  ),
  stream: Type.Optional(Type.Boolean({ default: false })),
  'timestamp_granularities[]': Type.Optional(
    Type.Array(granularity(), {
      description: 'What `verbose_json` holds beside the text.',
      default: ['segment'],
    }),
  ),
  'include[]': Type.Optional(
    Type.Array(Type.String(), { description: '`logprobs`: the chances of words.' }),
  ),
})

type Values = ReadonlyMap<string, readonly string[]>

/** Throws `invalid_request` that names the field at fault. */
export function readTranscriptionRequest(values: Values): TranscriptionRequest {
  const model = lastOf(values, 'model')
  if (model === null) throw refused('model', 'is required')
  return {
    model,
    language: lastOf(values, 'language') ?? 'en',
    vocabulary: readVocabulary(values),
    form: oneOf(lastOf(values, 'response_format') ?? 'json', 'response_format', answerForms),
    streams: readFlag(values, 'stream'),
    holds: readGranularities(listOf(values, 'timestamp_granularities')),
    wantsLogprobs: listOf(values, 'include').includes('logprobs'),
  }
}

/** An empty field counts as not given. */
function lastOf(values: Values, name: string): string | null {
  return values.get(name)?.at(-1)?.trim() || null
}

/** SDKs mark lists with brackets. */
function listOf(values: Values, name: string): string[] {
  return [...(values.get(`${name}[]`) ?? []), ...(values.get(name) ?? [])]
}

/** A prompt is a text in the style of what is said, so its words may be said too. */
function readVocabulary(values: Values): string[] {
  const prompt = lastOf(values, 'prompt') ?? ''
  const words = prompt.match(/[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu) ?? []
  const phrases = listOf(values, 'keywords').map((phrase) => phrase.trim())
  const usable = [...phrases, ...words].filter(({ length }) => length > 0 && length <= wordCharsMax)
  return [...new Set(usable)].slice(0, vocabularyMax)
}

/** Segments unless words alone are asked for. */
function readGranularities(asked: readonly string[]): TranscriptionRequest['holds'] {
  const known = asked.map((word) => oneOf(word, 'timestamp_granularities', granularities))
  return {
    words: known.includes('word'),
    segments: known.length === 0 || known.includes('segment'),
  }
}

/** Some clients write it as Python does. */
function readFlag(values: Values, name: string): boolean {
  const value = (lastOf(values, name) ?? 'false').toLowerCase()
  return oneOf(value, name, ['true', 'false']) === 'true'
}

function oneOf<Word extends string>(value: string, name: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === value)
  if (found !== undefined) return found
  throw refused(name, `must be one of ${words.join(', ')}`)
}

function refused(param: string, complaint: string): AppError {
  return new AppError('invalid_request', `"${param}" ${complaint}.`, { param })
}
