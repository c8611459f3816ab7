import { isOtherVersion, statusError, validatorOf } from '#installer/sources/origin-response.ts'
import { AppError } from '#lib/errors.ts'
import type { Version } from './part-file.ts'
import type { Span } from './ranges.ts'

/** The requested range, null for the whole file, and the known version of the file. */
export type RangeRequest = {
  readonly range: Span | null
  readonly known: Version
  /** The host for an error message. */
  readonly place: string
}

export type ResponseClass =
  /** A body that starts at the start of the range. `end`: null if unknown. */
  | { kind: 'body'; end: number | null; isFramed: boolean; version: Version }
  /** The file is empty. */
  | { kind: 'empty' }
  /** The file has changed; its new length if known. */
  | { kind: 'changed'; bytes: number | null }
  /** The source does not support ranges of this file, or not reliably. */
  | { kind: 'unrangeable'; error: AppError }
  /** A retry may succeed. */
  | { kind: 'failed'; error: AppError }

type ResponseHead = { readonly status: number; readonly headers: Headers }

/** Classifies a response by its status and headers. */
export function classifyResponse(head: ResponseHead, request: RangeRequest): ResponseClass {
  const { status, headers } = head
  const isRange = request.range !== null
  if (status === 416 && isRange) return classifyUnsatisfiable(headers, request)
  if (status >= 300) return { kind: 'failed', error: statusError(head, request.place) }
  const encoding = headers.get('content-encoding') ?? 'identity'
  if (encoding !== 'identity') return { kind: 'failed', error: invalid('compressed the file') }
  if (status === 206 && isRange) return classifyPartial(headers, request.range, request.known)
  if (status === 200) return classifyWhole(headers, request)
  return { kind: 'failed', error: invalid(`responded with status ${status}`) }
}

function classifyPartial(headers: Headers, [start, end]: Span, known: Version): ResponseClass {
  const contentRange = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(
    headers.get('content-range') ?? '',
  )
  const [, first, last, total] = contentRange ?? []
  const from = Number(first)
  const to = Number(last) + 1
  const bytes = total === undefined || total === '*' ? known.bytes : Number(total)
  const length = contentLength(headers)
  const isExpected =
    from === start &&
    to > from &&
    to <= end &&
    to <= (bytes ?? 0) &&
    (length ?? to - from) === to - from
  if (!isExpected) return { kind: 'unrangeable', error: invalid('returned another range') }
  const validator = validatorOf(headers)
  if (bytes !== (known.bytes ?? bytes) || isOtherVersion(headers, known.validator)) {
    return { kind: 'changed', bytes }
  }
  const version = { validator: known.validator ?? validator, bytes }
  return { kind: 'body', end: to, isFramed: length !== null, version }
}

function classifyWhole(headers: Headers, { range, known }: RangeRequest): ResponseClass {
  const bytes = contentLength(headers)
  const validator = validatorOf(headers)
  const isOtherLength = bytes !== null && known.bytes !== null && bytes !== known.bytes
  if (isOtherLength || isOtherVersion(headers, known.validator)) return { kind: 'changed', bytes }
  if (range !== null) {
    return { kind: 'unrangeable', error: invalid('does not support ranges') }
  }
  const version = { validator, bytes: known.bytes ?? bytes }
  return { kind: 'body', end: version.bytes, isFramed: bytes !== null, version }
}

/** Status 416: the range starts after the end of the file. */
function classifyUnsatisfiable(headers: Headers, { range, known }: RangeRequest): ResponseClass {
  const total = /^bytes \*\/(\d{1,15})$/.exec(headers.get('content-range') ?? '')?.[1]
  const bytes = total === undefined ? null : Number(total)
  const isEmpty = bytes === 0 && (known.bytes ?? 0) === 0 && range?.[0] === 0
  if (isEmpty) return { kind: 'empty' }
  if (bytes !== null && known.bytes !== null && bytes !== known.bytes) {
    return { kind: 'changed', bytes }
  }
  return { kind: 'unrangeable', error: invalid('rejected a range of the file') }
}

function contentLength(headers: Headers): number | null {
  const text = headers.get('content-length') ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}

function invalid(what: string): AppError {
  return new AppError('upstream_invalid_answer', `The source ${what}.`)
}
