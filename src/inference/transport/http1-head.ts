import { AppError } from '#lib/errors.ts'
import { isFieldName, isFieldValue } from './http1-fields.ts'

export type ResponseHead = {
  readonly status: number
  /** Names in lower case; the values of a repeated header are joined by commas. */
  readonly headers: ReadonlyMap<string, string>
  /** The minor version of HTTP/1: 0 or 1. */
  readonly minorVersion: number
}

export type HeadReader = {
  /**
   * Takes bytes from `from` on. Gives the index after the head when the head is complete, then
   * also as `head`, or -1 when more is needed.
   */
  push(bytes: Uint8Array, from: number): number
  readonly head: ResponseHead | null
}

const preface = 'HTTP/1.'
/** How many interim answers (1xx) may come before the real one. */
const interimAnswersMax = 16

/**
 * Reads the head of an answer (RFC 9112, 4 and 5), past interim answers. Strict: lines end with
 * CRLF, nothing is folded, nothing stands between a name and its colon. Throws an `AppError`
 * (`upstream_invalid_answer`), also when all heads together exceed `headerBytesMax`.
 */
export function createHeadReader(limits: { headerBytesMax: number }): HeadReader {
  let head: ResponseHead | null = null
  let lines: string[] = []
  let line = ''
  let bytesSeen = 0
  let interimAnswers = 0

  /** Whether this line completes the head of the real answer. */
  const takeLine = (text: string): boolean => {
    if (!text.endsWith('\r')) throw invalidAnswer('a line of the head does not end with CRLF')
    if (text !== '\r') {
      lines.push(text.slice(0, -1))
      return false
    }
    const parsed = parseHead(lines)
    lines = []
    if (parsed.status >= 200) {
      head = parsed
      return true
    }
    interimAnswers += 1
    if (parsed.status === 101) throw invalidAnswer('the protocol was switched without being asked')
    if (interimAnswers > interimAnswersMax) throw invalidAnswer('too many interim answers')
    return false
  }

  return {
    push(bytes, from) {
      let at = from
      while (true) {
        const lineFeed = bytes.indexOf(0x0a, at)
        const end = lineFeed === -1 ? bytes.length : lineFeed
        const known = line.length
        line += latin1(bytes, at, end)
        bytesSeen += end - at + (lineFeed === -1 ? 0 : 1)
        if (bytesSeen > limits.headerBytesMax) throw invalidAnswer('the head is too long')
        if (lines.length === 0 && known < preface.length) requirePreface(line)
        if (lineFeed === -1) return -1
        at = lineFeed + 1
        const text = line
        line = ''
        if (takeLine(text)) return at
      }
    },
    get head() {
      return head
    },
  }
}

/** The error for bytes that are no HTTP/1.1 answer; what was wrong goes to the log alone. */
export function invalidAnswer(what: string): AppError {
  return new AppError(
    'upstream_invalid_answer',
    'The upstream sent an answer that is not sound HTTP.',
    {
      cause: new Error(what),
    },
  )
}

/** Something other than HTTP is told by its first bytes, which need not form a line. */
function requirePreface(start: string) {
  if (!start.startsWith(preface.slice(0, start.length))) {
    throw invalidAnswer('the answer does not begin with HTTP/1')
  }
}

function parseHead(lines: readonly string[]): ResponseHead {
  const [statusLine = '', ...fieldLines] = lines
  const [, minorVersion, status] = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/.exec(statusLine) ?? []
  if (minorVersion === undefined || status === undefined || !isFieldValue(statusLine)) {
    throw invalidAnswer('the status line is malformed')
  }
  const headers = new Map<string, string>()
  for (const line of fieldLines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).toLowerCase()
    const value = trimBlanks(line.slice(colon + 1))
    if (!isFieldName(name) || !isFieldValue(value)) throw invalidAnswer('a header is malformed')
    const earlier = headers.get(name)
    headers.set(name, earlier === undefined ? value : `${earlier}, ${value}`)
  }
  return { status: Number(status), headers, minorVersion: Number(minorVersion) }
}

function trimBlanks(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && isBlank(text.charCodeAt(from))) from += 1
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1
  return text.slice(from, to)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1', from, to)
}
