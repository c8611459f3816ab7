import { isRecord, type JsonObject } from '#lib/json.ts'
import type { EngineErrorKind } from '#speech/engine.ts'
import { bytesOf } from '#speech/engines/audio-frames.ts'

export const appendMs = 100
/** Servers refuse to commit less. */
export const commitMsMin = 100
/** Beyond that a text that grows is cut; the final brings it whole. */
const partialCharsMax = 20_000
const hintCharsMax = 1_000

/** Base64 needs no escapes, so the frame is joined instead of encoded as JSON. */
export function appendFrame(samples: Int16Array): string {
  return `{"type":"input_audio_buffer.append","audio":"${bytesOf(samples).toString('base64')}"}`
}

export function growText(text: string, delta: unknown): string {
  return typeof delta === 'string' ? (text + delta).slice(0, partialCharsMax) : text
}

/** Words that are likely to be said, as the prompt that these models take; null without any. */
export function promptOf(vocabulary: readonly string[]): string | null {
  return vocabulary.length === 0 ? null : vocabulary.join(', ').slice(0, hintCharsMax)
}

export type RealtimeError = {
  readonly code: string
  readonly message: string
  readonly param: string
}

/** Most servers send an object, some a text with a code beside it. */
export function readError(frame: JsonObject): RealtimeError {
  const error = isRecord(frame['error']) ? frame['error'] : frame
  const { error: text, message = text, code, type, param } = error
  return {
    code: String(code ?? (type === 'error' ? '' : (type ?? ''))),
    message: String(message ?? 'an error without a message'),
    param: String(param ?? ''),
  }
}

const fatal: Readonly<Record<string, EngineErrorKind>> = {
  session_expired: 'limit',
  rate_limit_exceeded: 'busy',
  rate_limit_error: 'busy',
  insufficient_quota: 'refused',
  invalid_api_key: 'refused',
  authentication_error: 'refused',
  permission_denied: 'refused',
  model_not_found: 'refused',
  model_load_error: 'refused',
}

/** Null where the session goes on after such an error, as after most. */
export function kindOfFatal({ code }: RealtimeError): EngineErrorKind | null {
  return fatal[code] ?? null
}
