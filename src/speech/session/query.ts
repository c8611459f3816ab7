import { Type } from '@sinclair/typebox'
import { type Encoding, encodings } from '#speech/decoders/decoder.ts'
import { isLanguage, type Language, languages } from '#speech/engine.ts'
import { SessionError, type SessionErrorCode } from './session-error.ts'

/** The query parameters of a session. */
export type SessionQuery = {
  readonly language: Language
  readonly encoding: Encoding
  /** Null for encodings other than PCM, which state their rate themselves. */
  readonly sampleRateHz: number | null
  /** Only this engine, whose rights and languages are checked later; null: any. */
  readonly engineName: string | null
  /** Names of unknown parameters. */
  readonly ignored: readonly string[]
}

const sampleRateHzMin = 8_000
const sampleRateHzMax = 48_000

/** For the document. Validation errors are sent over the socket, in a fixed order. */
export const sessionQuery = Type.Object({
  lang: Type.Optional(
    Type.Union(
      languages.map((language) => Type.Literal(language)),
      { description: 'A language that a configured engine serves.', default: 'en' },
    ),
  ),
  encoding: Type.Union(encodings.map((encoding) => Type.Literal(encoding))),
  sample_rate_hz: Type.Optional(
    Type.Integer({
      description: 'Required for `pcm_int16` and `pcm_float32`.',
      minimum: sampleRateHzMin,
      maximum: sampleRateHzMax,
    }),
  ),
  engine: Type.Optional(
    Type.String({
      description: 'The name of an engine. Without it, the first that serves the language is used.',
    }),
  ),
  token: Type.Optional(
    Type.String({
      description: 'A JWT or an API key. Without it, `Authorization` or `X-Api-Key` is used.',
    }),
  ),
})
const knownParameters = Object.keys(sessionQuery.properties)
/** The part of an invalid value that an error repeats. */
const valueCharsMax = 64

/**
 * `served`: the languages of all engines. Throws a `SessionError`. The order of the checks is part
 * of the API: `language` first, then `lang`, `encoding`, `sample_rate_hz`.
 */
export function readSessionQuery(
  parameters: URLSearchParams,
  served: readonly Language[],
): SessionQuery {
  if (parameters.has('language')) {
    const message = 'The parameter "language" was renamed; use "lang".'
    const details = { use: 'lang', supported_languages: served }
    throw invalid('deprecated_parameter', 'language', message, details)
  }
  for (const name of knownParameters) {
    if (parameters.getAll(name).length <= 1) continue
    throw invalid('invalid_parameter', name, `The parameter "${name}" is given more than once.`)
  }
  const language = readLanguage(parameters.get('lang') ?? 'en', served)
  const encoding = readEncoding(parameters.get('encoding'))
  const isPcm = encoding === 'pcm_int16' || encoding === 'pcm_float32'
  return {
    language,
    encoding,
    sampleRateHz: isPcm ? readSampleRate(parameters.get('sample_rate_hz'), encoding) : null,
    engineName: parameters.get('engine'),
    ignored: [...new Set(parameters.keys())].filter((name) => !knownParameters.includes(name)),
  }
}

function readLanguage(value: string, served: readonly Language[]): Language {
  if (isLanguage(value) && served.includes(value)) return value
  throw unsupportedLanguage(value, served)
}

export function unsupportedLanguage(value: string, served: readonly Language[]): SessionError {
  const details = { value: value.slice(0, valueCharsMax), supported_languages: served }
  return invalid('unsupported_language', 'lang', 'This language is not supported.', details)
}

function readEncoding(value: string | null): Encoding {
  const encoding = encodings.find((known) => known === value)
  if (encoding !== undefined) return encoding
  const message =
    value === null ? 'The parameter "encoding" is required.' : 'This encoding is not supported.'
  const details = {
    value: value?.slice(0, valueCharsMax) ?? null,
    supported_encodings: encodings,
  }
  throw invalid('unsupported_encoding', 'encoding', message, details)
}

function readSampleRate(value: string | null, encoding: Encoding): number {
  const param = 'sample_rate_hz'
  const range = { minimum: sampleRateHzMin, maximum: sampleRateHzMax }
  if (value === null) {
    throw invalid('missing_parameter', param, `"${param}" is required for ${encoding}.`, range)
  }
  const rate = /^\d{1,6}$/.test(value) ? Number(value) : Number.NaN
  if (rate >= sampleRateHzMin && rate <= sampleRateHzMax) return rate
  const message = `"${param}" must be a whole number from ${sampleRateHzMin} to ${sampleRateHzMax}.`
  const details = { value: value.slice(0, valueCharsMax), ...range }
  throw invalid('invalid_parameter', param, message, details)
}

function invalid(
  code: SessionErrorCode,
  param: string,
  message: string,
  details: Record<string, unknown> = {},
): SessionError {
  return new SessionError(code, message, { param, details })
}
