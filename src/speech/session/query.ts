import { Type } from '@sinclair/typebox'
import { type Encoding, encodings } from '#speech/decoders/decoder.ts'
import { isLanguage, type Language, languages } from '#speech/engine.ts'
import { SessionError } from './session-error.ts'

/** What the address of a session says. */
export type SessionQuery = {
  readonly language: Language
  readonly encoding: Encoding
  /** Of the PCM encodings, which do not say it themselves; null for the others. */
  readonly sampleRateHz: number | null
  /** Names of parameters that mean nothing here. */
  readonly ignored: readonly string[]
}

const sampleRateHzMin = 8_000
const sampleRateHzMax = 48_000

/** As it is documented; what is wrong with it is told over the socket, in an order of its own. */
export const sessionQuery = Type.Object({
  lang: Type.Optional(
    Type.Union(
      languages.map((language) => Type.Literal(language)),
      { description: 'As far as an engine serves it.', default: 'en' },
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
  token: Type.Optional(
    Type.String({
      description: 'A JWT or an API key; without it `Authorization` or `X-Api-Key` count.',
    }),
  ),
})
const knownParameters = Object.keys(sessionQuery.properties)
/** A value is repeated in an error up to here. */
const valueCharsMax = 64

/**
 * `served` are the languages that some engine understands. Throws a `SessionError`; the order of
 * the checks is part of the interface: `language` first, then `lang`, `encoding`, `sample_rate_hz`.
 */
export function readSessionQuery(
  parameters: URLSearchParams,
  served: readonly Language[],
): SessionQuery {
  if (parameters.has('language')) throw deprecated(served)
  for (const name of knownParameters) {
    if (parameters.getAll(name).length > 1) throw repeated(name)
  }
  const language = readLanguage(parameters.get('lang') ?? 'en', served)
  const encoding = readEncoding(parameters.get('encoding'))
  const isPcm = encoding === 'pcm_int16' || encoding === 'pcm_float32'
  return {
    language,
    encoding,
    sampleRateHz: isPcm ? readSampleRate(parameters.get('sample_rate_hz'), encoding) : null,
    ignored: [...new Set(parameters.keys())].filter((name) => !knownParameters.includes(name)),
  }
}

function readLanguage(value: string, served: readonly Language[]): Language {
  if (isLanguage(value) && served.includes(value)) return value
  throw new SessionError('unsupported_language', 'This language is not supported.', {
    param: 'lang',
    details: { value: value.slice(0, valueCharsMax), supported_languages: served },
  })
}

function readEncoding(value: string | null): Encoding {
  const encoding = encodings.find((known) => known === value)
  if (encoding !== undefined) return encoding
  const sentence =
    value === null ? 'Say how the audio is encoded.' : 'This encoding is not supported.'
  throw new SessionError('unsupported_encoding', sentence, {
    param: 'encoding',
    details: { value: value?.slice(0, valueCharsMax) ?? null, supported_encodings: encodings },
  })
}

function readSampleRate(value: string | null, encoding: Encoding): number {
  const param = 'sample_rate_hz'
  if (value === null) {
    throw new SessionError('missing_parameter', `"${param}" is required for ${encoding}.`, {
      param,
      details: { minimum: sampleRateHzMin, maximum: sampleRateHzMax },
    })
  }
  const rate = /^\d{1,6}$/.test(value) ? Number(value) : Number.NaN
  if (rate >= sampleRateHzMin && rate <= sampleRateHzMax) return rate
  const sentence = `"${param}" must be a whole number from ${sampleRateHzMin} to ${sampleRateHzMax}.`
  throw new SessionError('invalid_parameter', sentence, {
    param,
    details: {
      value: value.slice(0, valueCharsMax),
      minimum: sampleRateHzMin,
      maximum: sampleRateHzMax,
    },
  })
}

function deprecated(served: readonly Language[]): SessionError {
  const sentence = 'The parameter "language" is now called "lang".'
  return new SessionError('deprecated_parameter', sentence, {
    param: 'language',
    details: { use: 'lang', supported_languages: served },
  })
}

function repeated(name: string): SessionError {
  const sentence = `The parameter "${name}" is given more than once.`
  return new SessionError('invalid_parameter', sentence, { param: name })
}
