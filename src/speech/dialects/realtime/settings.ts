import { isRecord, type JsonObject } from '#lib/json.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { languages } from '#speech/engine.ts'
import {
  chooseEngineName,
  chooseLanguage,
  chooseVocabulary,
  type SpeechChoices,
  wordsOf,
} from '../choice.ts'
import { invalidValue, RealtimeError, unsupported } from './errors.ts'

const audioFormats = ['pcm16', 'g711_ulaw', 'g711_alaw'] as const
type RealtimeFormat = (typeof audioFormats)[number]

type TurnDetection = {
  readonly threshold: number
  readonly prefixPaddingMs: number
  readonly silenceMs: number
}

/** What a client has configured. */
export type RealtimeSettings = {
  readonly format: RealtimeFormat
  readonly model: string | null
  readonly engineName: string | null
  /** As sent. */
  readonly languageTag: string | null
  readonly prompt: string | null
  readonly keywords: readonly string[]
  /** Null: the client commits its turns. */
  readonly turnDetection: TurnDetection | null
  readonly includesLogprobs: boolean
}

const defaultTurnDetection: TurnDetection = { threshold: 0.5, prefixPaddingMs: 300, silenceMs: 500 }

export const defaultSettings: RealtimeSettings = {
  format: 'pcm16',
  model: null,
  engineName: null,
  languageTag: null,
  prompt: null,
  keywords: [],
  turnDetection: defaultTurnDetection,
  includesLogprobs: false,
}

export const pcmRateHz = 24_000
const logprobsInclusion = 'item.input_audio_transcription.logprobs'
const promptCharsMax = 8_192

type Reading = {
  readonly choices: SpeechChoices
  readonly principal: RequestPrincipal
  readonly before: RealtimeSettings
}

/** The settings after `session.update`. Fields that are absent keep their values. */
export function readSession(session: JsonObject, reading: Reading): RealtimeSettings {
  const at = 'session'
  requireKnown(session, at, ['type', 'audio', 'include', 'object', 'id', 'expires_at'])
  if (session['type'] !== undefined && session['type'] !== 'transcription') {
    throw invalidValue(`${at}.type`, session['type'], ['transcription'])
  }
  const audio = readRecord(session, 'audio', at)
  requireKnown(audio, `${at}.audio`, ['input'])
  const input = readRecord(audio, 'input', `${at}.audio`)
  const fields = ['format', 'noise_reduction', 'transcription', 'turn_detection']
  requireKnown(input, `${at}.audio.input`, fields)
  return readInput(session, {
    ...reading,
    format: readFormat(input['format'], `${at}.audio.input.format`),
    transcription: { value: input['transcription'], at: `${at}.audio.input.transcription` },
    turnDetection: { value: input['turn_detection'], at: `${at}.audio.input.turn_detection` },
  })
}

/** The settings after `transcription_session.update`, the older form. */
export function readBetaSession(session: JsonObject, reading: Reading): RealtimeSettings {
  const at = 'session'
  requireKnown(session, at, [
    'input_audio_format',
    'input_audio_transcription',
    'turn_detection',
    'input_audio_noise_reduction',
    'include',
    'modalities',
    'object',
    'id',
    'expires_at',
    'client_secret',
  ])
  const format = session['input_audio_format'] ?? undefined
  const known = audioFormats.find((name) => name === format)
  if (format !== undefined && known === undefined) {
    throw invalidValue(`${at}.input_audio_format`, format, audioFormats)
  }
  return readInput(session, {
    ...reading,
    format: known,
    transcription: {
      value: session['input_audio_transcription'],
      at: `${at}.input_audio_transcription`,
    },
    turnDetection: { value: session['turn_detection'], at: `${at}.turn_detection` },
  })
}

type Located = { readonly value: unknown; readonly at: string }

function readInput(
  session: JsonObject,
  given: Reading & {
    readonly format: RealtimeFormat | undefined
    readonly transcription: Located
    readonly turnDetection: Located
  },
): RealtimeSettings {
  const { before } = given
  return {
    ...before,
    ...readTranscription(given.transcription, given),
    format: given.format ?? before.format,
    turnDetection: readTurnDetection(given.turnDetection, before.turnDetection),
    includesLogprobs: readInclude(session['include']) ?? before.includesLogprobs,
  }
}

function readFormat(value: unknown, at: string): RealtimeFormat | undefined {
  if (value === undefined || value === null) return undefined
  const names = {
    'audio/pcm': 'pcm16',
    'audio/pcmu': 'g711_ulaw',
    'audio/pcma': 'g711_alaw',
  } as const
  const { type, rate } = isRecord(value) ? value : { type: value, rate: undefined }
  const known = Object.entries(names).find(([name]) => name === type)
  if (known === undefined) throw invalidValue(`${at}.type`, type, Object.keys(names))
  if (known[1] === 'pcm16' && rate !== undefined && rate !== pcmRateHz) {
    throw invalidValue(`${at}.rate`, rate, [String(pcmRateHz)])
  }
  return known[1]
}

function readTranscription({ value, at }: Located, { choices, principal, before }: Reading) {
  if (value === undefined || value === null) return {}
  if (!isRecord(value)) throw new RealtimeError('invalid_type', `"${at}" must be an object.`, at)
  requireKnown(value, at, ['model', 'language', 'languages', 'prompt', 'keywords', 'delay'])
  const listed = readTexts(value, 'languages', at)
  if (listed.length > 1) throw unsupported(`${at}.languages`, 'more than one language')
  const languageTag = readText(value, 'language', at) ?? listed[0] ?? before.languageTag
  if (languageTag !== null && chooseLanguage(choices, languageTag) === null) {
    throw invalidValue(`${at}.language`, languageTag, languages.filter(served(choices)))
  }
  const prompt = readText(value, 'prompt', at) ?? before.prompt
  if (prompt !== null && prompt.length > promptCharsMax) {
    const message = `"${at}.prompt" may have at most ${promptCharsMax} characters.`
    throw new RealtimeError('string_above_max_length', message, `${at}.prompt`)
  }
  const model = readText(value, 'model', at)
  const keywords =
    value['keywords'] === undefined ? before.keywords : readTexts(value, 'keywords', at)
  return {
    languageTag,
    prompt,
    keywords,
    ...(model === null ? {} : chooseModel(model, { choices, principal, at: `${at}.model` })),
  }
}

export function chooseModel(
  model: string,
  { choices, principal, at }: Pick<Reading, 'choices' | 'principal'> & { readonly at: string },
): Pick<RealtimeSettings, 'model' | 'engineName'> {
  const engineName = chooseEngineName(choices, principal, model)
  if (engineName !== undefined) return { model, engineName }
  throw new RealtimeError('model_not_found', `The model "${model}" does not exist.`, at)
}

function readTurnDetection(
  { value, at }: Located,
  before: TurnDetection | null,
): TurnDetection | null {
  if (value === undefined) return before
  if (value === null) return null
  if (!isRecord(value)) throw new RealtimeError('invalid_type', `"${at}" must be an object.`, at)
  const { type = 'server_vad' } = value
  if (type === 'none') return null
  if (type !== 'server_vad') throw invalidValue(`${at}.type`, type, ['server_vad'])
  const responses = ['create_response', 'interrupt_response', 'idle_timeout_ms']
  const timing = ['threshold', 'prefix_padding_ms', 'silence_duration_ms']
  requireKnown(value, at, ['type', ...timing, ...responses])
  const base = before ?? defaultTurnDetection
  return {
    threshold: readNumber(value, 'threshold', at, 1) ?? base.threshold,
    prefixPaddingMs: readNumber(value, 'prefix_padding_ms', at, 10_000) ?? base.prefixPaddingMs,
    silenceMs: readNumber(value, 'silence_duration_ms', at, 10_000) ?? base.silenceMs,
  }
}

function readInclude(value: unknown): boolean | undefined {
  if (value === undefined) return undefined
  if (value === null) return false
  const at = 'session.include'
  if (!Array.isArray(value)) throw new RealtimeError('invalid_type', `"${at}" must be a list.`, at)
  const unknown = value.find((name) => name !== logprobsInclusion)
  if (unknown !== undefined) throw invalidValue(at, unknown, [logprobsInclusion])
  return value.length > 0
}

/** What the session objects of the server contain. */
export function renderInclude({ includesLogprobs }: RealtimeSettings): string[] | null {
  return includesLogprobs ? [logprobsInclusion] : null
}

export function vocabularyOf({ prompt, keywords }: RealtimeSettings): readonly string[] {
  return chooseVocabulary([...keywords, ...wordsOf(prompt ?? '')])
}

function served({ languages: known }: SpeechChoices) {
  return (language: (typeof languages)[number]) => known().includes(language)
}

function requireKnown(value: JsonObject, at: string, known: readonly string[]): void {
  const unknown = Object.keys(value).find((name) => !known.includes(name))
  if (unknown === undefined) return
  const param = `${at}.${unknown}`.slice(0, 128)
  throw new RealtimeError('unknown_parameter', `Unknown parameter: '${param}'.`, param)
}

function readRecord(value: JsonObject, name: string, at: string): JsonObject {
  const field = value[name] ?? {}
  if (isRecord(field)) return field
  const param = `${at}.${name}`
  throw new RealtimeError('invalid_type', `"${param}" must be an object.`, param)
}

/** Null if it is absent. */
function readText(value: JsonObject, name: string, at: string): string | null {
  const field = value[name] ?? null
  if (field === null || (typeof field === 'string' && field !== '')) return field
  if (field === '') return null
  const param = `${at}.${name}`
  throw new RealtimeError('invalid_type', `"${param}" must be a string.`, param)
}

function readTexts(value: JsonObject, name: string, at: string): readonly string[] {
  const field = value[name] ?? []
  if (Array.isArray(field) && field.every((text) => typeof text === 'string')) return field
  const param = `${at}.${name}`
  throw new RealtimeError('invalid_type', `"${param}" must be a list of strings.`, param)
}

function readNumber(value: JsonObject, name: string, at: string, max: number): number | undefined {
  const field = value[name] ?? undefined
  if (field === undefined) return undefined
  if (typeof field === 'number' && field >= 0 && field <= max) return field
  const param = `${at}.${name}`
  throw new RealtimeError('invalid_value', `"${param}" must be a number from 0 to ${max}.`, param)
}
