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
