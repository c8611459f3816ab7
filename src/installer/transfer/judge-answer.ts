import { refusalOf } from '#installer/sources/refusal.ts'
import { isOtherVersion, validatorOf } from '#installer/sources/validator.ts'
import { AppError } from '#lib/errors.ts'
import type { Version } from './part-file.ts'
import type { Span } from './spans.ts'

/** What was asked for; null: the whole file. */
export type Asked = { readonly range: Span | null; readonly known: Version }

export type Judgement =
  /** A body that begins where it was asked for. `end` is null where nobody knows it. */
  | { kind: 'body'; end: number | null; isFramed: boolean; version: Version }
  /** The file is empty. */
  | { kind: 'empty' }
  /** The file is another one by now; its length, where it was said. */
  | { kind: 'changed'; bytes: number | null }
  /** Parts of this file cannot be asked for, or not be trusted. */
  | { kind: 'unrangeable'; error: AppError }
  /** Another try may go better. */
  | { kind: 'failed'; error: AppError }

type Head = { readonly status: number; readonly headers: Headers }

/** What the head of an answer says about what follows. */
export function judgeAnswer(head: Head, asked: Asked): Judgement {
  const { status, headers } = head
  const isRange = asked.range !== null
  if (status === 416 && isRange) return judgeUnsatisfied(headers, asked)
  if (status >= 300) return { kind: 'failed', error: refusalOf(head) }
  const coding = headers.get('content-encoding') ?? 'identity'
  if (coding !== 'identity') return { kind: 'failed', error: invalid('packed the file') }
  if (status === 206 && isRange) return judgePart(headers, asked.range, asked.known)
  if (status === 200) return judgeWhole(headers, asked)
  return { kind: 'failed', error: invalid(`answered with status ${status}`) }
}

function judgePart(headers: Headers, [start, end]: Span, known: Version): Judgement {
  const said = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(
    headers.get('content-range') ?? '',
  )
  const [, first, last, total] = said ?? []
  const from = Number(first)
  const to = Number(last) + 1
  const bytes = total === undefined || total === '*' ? known.bytes : Number(total)
  const length = lengthOf(headers)
  const isFit =
    from === start &&
    to > from &&
    to <= end &&
    to <= (bytes ?? 0) &&
    (length ?? to - from) === to - from
  if (!isFit) return { kind: 'unrangeable', error: invalid('sent another part than asked for') }
  const validator = validatorOf(headers)
  if (bytes !== (known.bytes ?? bytes) || isOtherVersion(headers, known.validator)) {
    return { kind: 'changed', bytes }
  }
  const version = { validator: known.validator ?? validator, bytes }
  return { kind: 'body', end: to, isFramed: length !== null, version }
}

function judgeWhole(headers: Headers, { range, known }: Asked): Judgement {
  const bytes = lengthOf(headers)
  const validator = validatorOf(headers)
  const isOtherLength = bytes !== null && known.bytes !== null && bytes !== known.bytes
  if (isOtherLength || isOtherVersion(headers, known.validator)) return { kind: 'changed', bytes }
  if (range !== null) {
    return { kind: 'unrangeable', error: invalid('sends the file only as a whole') }
  }
  const version = { validator, bytes: known.bytes ?? bytes }
  return { kind: 'body', end: version.bytes, isFramed: bytes !== null, version }
}

/** The server says that the part begins after the end of the file. */
function judgeUnsatisfied(headers: Headers, { range, known }: Asked): Judgement {
  const said = /^bytes \*\/(\d{1,15})$/.exec(headers.get('content-range') ?? '')?.[1]
  const bytes = said === undefined ? null : Number(said)
  const isEmpty = bytes === 0 && (known.bytes ?? 0) === 0 && range?.[0] === 0
  if (isEmpty) return { kind: 'empty' }
  if (bytes !== null && known.bytes !== null && bytes !== known.bytes) {
    return { kind: 'changed', bytes }
  }
  return { kind: 'unrangeable', error: invalid('refuses a part of the file') }
}

function lengthOf(headers: Headers): number | null {
  const text = headers.get('content-length') ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}

function invalid(what: string): AppError {
  return new AppError('upstream_invalid_answer', `The source ${what}.`)
}
