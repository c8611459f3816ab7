import { Type } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { AudioFormat } from '#speech/decoders/decoder.ts'
import type { Language } from '#speech/engine.ts'
import {
  chooseEngineName,
  chooseLanguage,
  chooseVocabulary,
  type SpeechChoices,
} from '../choice.ts'

const flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const text = (description: string) => Type.Optional(Type.String({ description }))

const noEffect = 'Accepted; the engine decides.'

/** The parameters that are accepted. Any other one is refused, unless it is `false`. */
export const listenQuery = Type.Object({
  model: text('The name of an engine, or a name such as `nova-3` that selects one by language.'),
  language: text('A tag such as `en-US`; only the language counts. By default `en`.'),
  encoding: text(
    '`linear16`, `mulaw`, `alaw`, `opus` or `ogg-opus`; absent: WAV, MP3, Ogg or WebM, detected.',
  ),
  sample_rate: Type.Optional(
    Type.Integer({ minimum: 8_000, maximum: 48_000, description: 'Required for `linear16`.' }),
  ),
  channels: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 2, description: 'Two channels are mixed.' }),
  ),
  interim_results: flag('Whether results are sent before they are final.'),
  endpointing: text('The silence in ms after which speech is final, or `false`.'),
  utterance_end_ms: Type.Optional(
    Type.Integer({ minimum: 1_000, maximum: 10_000, description: 'Requests `UtteranceEnd`.' }),
  ),
  vad_events: flag('Requests `SpeechStarted`.'),
  keyterm: text('A likely word or phrase; may be repeated.'),
  keywords: text('The same, with an optional `:weight`, which is ignored.'),
  punctuate: flag(noEffect),
  smart_format: flag(noEffect),
  numerals: flag(noEffect),
  filler_words: flag(noEffect),
  profanity_filter: Type.Optional(Type.Literal(false)),
  version: text('Has no effect.'),
  tag: text('Has no effect; may be repeated.'),
  extra: text('Has no effect; may be repeated.'),
  mip_opt_out: flag('Has no effect: audio is not kept.'),
  utterances: flag('Of files: results by utterance.'),
  token: text('A JWT or an API key, where headers cannot be set.'),
})

const known = Object.keys(listenQuery.properties)
const repeatable = ['keyterm', 'keywords', 'tag', 'extra']
const paramCharsMax = 64

export type ListenParameters = {
  readonly model: string | null
  readonly engineName: string | null
  readonly language: Language
  /** Null: detected from the first bytes. */
  readonly encoding: 'linear16' | 'mulaw' | 'alaw' | 'opus' | 'ogg-opus' | null
  readonly sampleRateHz: number
  readonly channels: AudioFormat['channels']
  readonly interimResults: boolean
  /** Null: results are never marked as the end of speech. */
  readonly endpointingMs: number | null
  readonly utteranceEndMs: number | null
  readonly vadEvents: boolean
  readonly vocabulary: readonly string[]
  readonly utterances: boolean
}

const encodings = ['linear16', 'mulaw', 'alaw', 'opus', 'ogg-opus'] as const
const g711RateHz = 8_000
const rateMin = 8_000
const rateMax = 48_000
const utteranceEndMin = 1_000
const endpointingMsMax = 10_000

/** Throws `invalid_request` with the parameter at fault. */
export function readListenParameters(
  query: URLSearchParams,
  choices: SpeechChoices,
  principal: RequestPrincipal,
): ListenParameters {
  requireKnown(query)
  const encoding = readEncoding(query.get('encoding'))
  const model = query.get('model') || null
  const interimResults = readFlag(query, 'interim_results')
  const utteranceEndMs = readWhole(query, 'utterance_end_ms', utteranceEndMin, endpointingMsMax)
  const endpointing = query.get('endpointing')
  return {
    model,
    engineName: model === null ? null : readModel(model, choices, principal),
    language: readLanguage(query.get('language') || 'en', choices),
    encoding,
    sampleRateHz: readRate(query, encoding),
    channels: readWhole(query, 'channels', 1, 2) === 2 ? 2 : 1,
    interimResults,
    endpointingMs:
      endpointing === 'false' ? null : readWhole(query, 'endpointing', 0, endpointingMsMax, 600),
    utteranceEndMs,
    vadEvents: readFlag(query, 'vad_events'),
    vocabulary: chooseVocabulary([
      ...query.getAll('keyterm').flatMap(listOf),
      ...query.getAll('keywords').flatMap(listOf).map(withoutWeight),
    ]),
    utterances: readFlag(query, 'utterances'),
  }
}

function requireKnown(query: URLSearchParams): void {
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name)
    const isOff = values.every((value) => value === 'false' || value === '')
    if (name === 'profanity_filter' ? !isOff : !known.includes(name) && !isOff) {
      const shown = name.slice(0, paramCharsMax)
      throw invalid(shown, `The parameter "${shown}" is not supported by this gateway.`)
    }
    if (values.length > 1 && known.includes(name) && !repeatable.includes(name)) {
      throw invalid(name, `The parameter "${name}" is given more than once.`)
    }
  }
}

function readEncoding(value: string | null): ListenParameters['encoding'] {
  if (value === null || value === '') return null
  const encoding = encodings.find((name) => name === value)
  if (encoding !== undefined) return encoding
  throw invalid('encoding', `This encoding is not supported; use one of ${encodings.join(', ')}.`)
}

function readRate(query: URLSearchParams, encoding: ListenParameters['encoding']): number {
  const rate = readWhole(query, 'sample_rate', rateMin, rateMax)
  if (rate !== null) return rate
  if (encoding !== 'linear16') return g711RateHz
  throw invalid('sample_rate', 'The parameter "sample_rate" is required for linear16.')
}

function readModel(model: string, choices: SpeechChoices, principal: RequestPrincipal) {
  const engineName = chooseEngineName(choices, principal, model)
  if (engineName !== undefined) return engineName
  throw new AppError('model_not_found', `The model "${model}" does not exist.`, { param: 'model' })
}

function readLanguage(tag: string, choices: SpeechChoices): Language {
  const language = chooseLanguage(choices, tag)
  if (language !== null) return language
  const served = choices.languages().join(', ')
  throw invalid('language', `This language is not supported; use one of ${served}.`)
}

function readFlag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name) ?? 'false'
  if (value === 'true' || value === 'false' || value === '') return value === 'true'
  throw invalid(name, `The parameter "${name}" must be true or false.`)
}

/** The default where it is absent, empty or `true`. */
function readWhole<T extends number | null = null>(
  query: URLSearchParams,
  name: string,
  min: number,
  max: number,
  absent: T = null as T,
): number | T {
  const value = query.get(name) ?? ''
  if (value === '' || (value === 'true' && name === 'endpointing')) return absent
  const number = /^\d{1,6}$/.test(value) ? Number(value) : Number.NaN
  if (number >= min && number <= max) return number
  throw invalid(name, `The parameter "${name}" must be a whole number from ${min} to ${max}.`)
}

/** Some clients send a list as JSON. */
function listOf(value: string): string[] {
  if (!value.startsWith('[')) return [value]
  try {
    const list: unknown = JSON.parse(value)
    return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : [value]
  } catch {
    return [value]
  }
}

function withoutWeight(keyword: string): string {
  return keyword.replace(/:-?[\d.]+$/, '')
}

function invalid(param: string, message: string): AppError {
  return new AppError('invalid_request', message, { param })
}
