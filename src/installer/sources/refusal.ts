import { AppError } from '#lib/errors.ts'

/** The longest pause that a server may ask of us. */
const retryAfterSMax = 300

/** The failure that a status other than success stands for. */
export function refusalOf({ status, headers }: { status: number; headers: Headers }): AppError {
  const retryAfterS = retryAfterOf(headers)
  const details = retryAfterS === null ? {} : { retryAfterS }
  if (status === 401 || status === 403) {
    return new AppError(
      'source_auth_required',
      'The source wants a credential that this server does not have, or there is no such model.',
    )
  }
  if (status === 404 || status === 410) {
    return new AppError('not_found', 'The source does not have this.')
  }
  if (status === 429 || status === 503) {
    return new AppError('upstream_overloaded', 'The source has too much to do.', details)
  }
  if (status >= 500 || status === 408 || status === 425) {
    return new AppError('upstream_error', `The source failed with status ${status}.`, details)
  }
  return new AppError('upstream_refused', `The source answered with status ${status}.`)
}

/** Seconds; a date is measured by the clock of whoever sent it. */
function retryAfterOf(headers: Headers): number | null {
  const text = headers.get('retry-after')
  if (text === null) return null
  const seconds = /^\d+$/.test(text)
    ? Number(text)
    : (Date.parse(text) - Date.parse(headers.get('date') ?? '')) / 1000
  if (Number.isNaN(seconds)) return null
  return Math.min(Math.max(Math.ceil(seconds), 0), retryAfterSMax)
}
