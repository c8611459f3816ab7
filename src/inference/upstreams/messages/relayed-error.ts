import type { RelayedError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'

/** The statuses of the protocol's errors, which one in the middle of a stream does not bear. */
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
 * An error answer as a caller of the same protocol gets it; null for what is to be told in our words:
 * a page of some proxy, and a refusal of our own credential, which the caller would take for theirs.
 */
export function relayOfAnswer(answer: { status: number; body: string }): RelayedError | null {
  const { status, body } = answer
  if (status === 401 || status === 403 || readType(parseJson(body)) === null) return null
  return { status, body, contentType: 'application/json' }
}

/** The same of an error that came inside a stream. */
export function relayOfPayload(payload: JsonObject): RelayedError | null {
  const status = statuses[readType(payload) ?? '']
  if (status === undefined) return null
  return { status, body: JSON.stringify(payload), contentType: 'application/json' }
}

/** The type in an error body of the protocol; null for any other body. */
function readType(body: unknown): string | null {
  if (!isRecord(body) || body['type'] !== 'error' || !isRecord(body['error'])) return null
  const { type } = body['error']
  return typeof type === 'string' ? type : null
}
