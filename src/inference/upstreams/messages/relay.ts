import type { RelayFrame } from '#inference/events.ts'
import type { RelayedError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { readSealed } from './wire.ts'

/** An event of the protocol; `data` is its JSON text as it arrived, empty where it was changed. */
export type Frame = { readonly payload: JsonObject; readonly data: string }

/** A frame for a client of the same protocol. */
export function frameOf(payload: JsonObject, data = ''): RelayFrame {
  const text = data.includes('\n') ? '' : data
  const sealed = readSealed(payload)
  return sealed === '' ? { payload, data: text } : { payload, data: text, sealed }
}

/** The HTTP statuses of the protocol's errors; an error inside a stream carries none. */
const statuses: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  billing_error: 402,
  not_found_error: 404,
  conflict_error: 409,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
}

/**
 * An error response for a client of the same protocol; null where Sluice composes the error: for a
 * proxy's page, and for a rejected credential, which the client would take for its own.
 */
export function relayResponseError(response: {
  status: number
  body: string
}): RelayedError | null {
  const { status, body } = response
  if (status === 401 || status === 403 || readErrorType(parseJson(body)) === null) return null
  return { status, body, contentType: 'application/json' }
}

/** An error inside a stream for a client of the same protocol. */
export function relayStreamError(payload: JsonObject): RelayedError | null {
  const status = statuses[readErrorType(payload) ?? '']
  if (status === undefined) return null
  return { status, body: JSON.stringify(payload), contentType: 'application/json' }
}

/** The type in an error body of the protocol; null for any other body. */
function readErrorType(body: unknown): string | null {
  if (!isRecord(body) || body['type'] !== 'error' || !isRecord(body['error'])) return null
  const { type } = body['error']
  return typeof type === 'string' ? type : null
}
