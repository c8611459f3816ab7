import { AppError } from '#lib/errors.ts'
import { parseJson } from '#lib/json.ts'
import type { Origin, OriginRequest } from './origin.ts'

/** File lists and manifests. */
const jsonBytesMax = 8 * 1024 * 1024
/** Longer Retry-After values are capped. */
const retryAfterSMax = 300

export type JsonResponse = {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  /** Undefined unless the status is 200. */
  readonly value: unknown
}

/** Fetches JSON; throws if a successful response is not JSON. */
export async function fetchJson(
  origin: Origin,
  url: URL,
  request: Pick<OriginRequest, 'headers' | 'signal'>,
): Promise<JsonResponse> {
  const headers = { accept: 'application/json', ...request.headers }
  const response = await origin.read(url, { ...request, headers, bytesMax: jsonBytesMax })
  const { status, bytes } = response
  const value = status === 200 ? parseJson(new TextDecoder().decode(bytes)) : undefined
  if (status === 200 && value === undefined) {
    throw new AppError(
      'upstream_invalid_answer',
      `The response of ${origin.place(url)} is not JSON.`,
    )
  }
  return { status, headers: response.headers, bytes, value }
}

/** The error for a status other than success. `place` is the host as `Origin.place` names it. */
export function statusError(
  { status, headers }: { status: number; headers: Headers },
  place: string,
  wanted = 'this',
): AppError {
  const retryAfterS = retryAfterOf(headers)
  const details = retryAfterS === null ? {} : { retryAfterS }
  if (status === 401 || status === 403) {
    return new AppError(
      'source_auth_required',
      `${place} requires a credential that this server does not have, or the model does not exist. A credential can be set for the hub only: installer.hub_token.`,
    )
  }
  if (status === 404 || status === 410) {
    return new AppError('not_found', `${place} does not have ${wanted}.`)
  }
  if (status === 429 || status === 503) {
    return new AppError('upstream_overloaded', `${place} is overloaded.`, details)
  }
  if (status >= 500 || status === 408 || status === 425) {
    return new AppError('upstream_error', `${place} failed with status ${status}.`, details)
  }
  return new AppError('upstream_refused', `${place} responded with status ${status}.`)
}

/** Seconds; a date is relative to the clock of the source. */
function retryAfterOf(headers: Headers): number | null {
  const text = headers.get('retry-after')
  if (text === null) return null
  const seconds = /^\d+$/.test(text)
    ? Number(text)
    : (Date.parse(text) - Date.parse(headers.get('date') ?? '')) / 1000
  if (Number.isNaN(seconds)) return null
  return Math.min(Math.max(Math.ceil(seconds), 0), retryAfterSMax)
}

/** A strong entity tag, which identifies the exact bytes; null for none. */
export function strongEtag(headers: Headers): string | null {
  const etag = headers.get('etag')?.trim() ?? ''
  return /^"[\x21\x23-\x7e]{1,512}"$/.test(etag) ? etag : null
}

/**
 * The value for `If-Range`, which prevents that ranges of two versions are combined: a strong entity
 * tag, else the modification date.
 */
export function validatorOf(headers: Headers): string | null {
  const changed = headers.get('last-modified')
  const isDate = changed !== null && !Number.isNaN(Date.parse(changed))
  return strongEtag(headers) ?? (isDate ? changed : null)
}

/** Whether a response is of another version; one without a validator counts as the same. */
export function isOtherVersion(headers: Headers, validator: string | null): boolean {
  if (validator === null) return false
  const current = validator.startsWith('"') ? strongEtag(headers) : headers.get('last-modified')
  return current !== null && current !== validator
}
