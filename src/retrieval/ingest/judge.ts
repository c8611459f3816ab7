import { AppError, type ErrorKind, toAppError } from '#lib/errors.ts'
import { type UnreadableCode, UnreadableFile } from '#retrieval/extraction/unreadable.ts'
import type { IngestFailure } from './store.ts'

/** Files without text are no failure: there is nothing in them to be found. */
const skipping: ReadonlySet<UnreadableCode> = new Set(['no_text', 'unsupported_file'])

/** Failures that lie in what was asked or in the model, so that the next try would be the same. */
const lasting: ReadonlySet<ErrorKind> = new Set([
  'invalid_request',
  'request_too_large',
  'context_length_exceeded',
  'unprocessable',
  'model_mode_mismatch',
  'upstream_invalid_answer',
])

/** What is told of a failure that no further try will mend; null where one may. */
export function lastingFailure(error: unknown): IngestFailure | null {
  if (error instanceof UnreadableFile) {
    const { code, message } = error
    return { state: skipping.has(code) ? 'skipped' : 'failed', code, message }
  }
  return error instanceof AppError && lasting.has(error.kind) ? failureOf(error) : null
}

/** What is told of any failure, in public words. */
export function failureOf(error: unknown): IngestFailure {
  const { wireCode, message } = toAppError(error)
  return { state: 'failed', code: wireCode, message }
}
