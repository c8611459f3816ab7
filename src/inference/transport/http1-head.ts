import { AppError } from '#lib/errors.ts'

export type ResponseHead = {
  readonly status: number
  /** Names in lower case; values of repeated headers are joined by commas. */
  readonly headers: ReadonlyMap<string, string>
  /** The minor version of HTTP/1: 0 or 1. */
  readonly minorVersion: number
}

export type HeadReader = {
  /**
   * Reads bytes from `from`. Returns the index after the head once it is complete; `head` is then set.
   * Returns -1 while more bytes are needed.
   */
  push(bytes: Uint8Array, from: number): number
  readonly head: ResponseHead | null
}

const preface = 'HTTP/1.'
/** The most interim responses (1xx) before the final one. */
const interimResponsesMax = 16

/**
 * Reads the head of a response (RFC 9112, 4 and 5), skipping interim responses. Strict: lines end with
 * CRLF, no line folding, no space before a colon. Throws an `AppError` (`upstream_invalid_answer`),
 * also when all heads together exceed `headerBytesMax`.
 */
export function createHeadReader(limits: { headerBytesMax: number }): HeadReader {
  let head: ResponseHead | null = null
  let lines: string[] = []
  let line = ''
  let bytesSeen = 0
  let interimResponses = 0

  /** Returns whether this line completes the head of the final response. */
  const readLine = (text: string): boolean => {
    if (!text.endsWith('\r')) throw invalidResponse('a line of the head does not end with CRLF')
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
    interimResponses += 1
    if (parsed.status === 101) throw invalidResponse('the protocol was switched without a request')
    if (interimResponses > interimResponsesMax) throw invalidResponse('too many interim responses')
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
        if (bytesSeen > limits.headerBytesMax) throw invalidResponse('the head is too long')
        if (lines.length === 0 && known < preface.length) requirePreface(line)
        if (lineFeed === -1) return -1
        at = lineFeed + 1
        const text = line
        line = ''
        if (readLine(text)) return at
      }
    },
    get head() {
      return head
    },
  }
}

/** The error for an invalid HTTP response. `problem` is only logged. */
export function invalidResponse(problem: string): AppError {
  return new AppError('upstream_invalid_answer', 'The upstream sent an invalid HTTP response.', {
    cause: new Error(problem),
  })
}

/** Detects other protocols by their first bytes, which may not form a line. */
function requirePreface(start: string) {
  if (!start.startsWith(preface.slice(0, start.length))) {
    throw invalidResponse('the response does not start with HTTP/1')
  }
}

function parseHead(lines: readonly string[]): ResponseHead {
  const [statusLine = '', ...fieldLines] = lines
  const [, minorVersion, status] = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: |$)/.exec(statusLine) ?? []
  if (minorVersion === undefined || status === undefined || !isFieldValue(statusLine)) {
    throw invalidResponse('the status line is malformed')
  }
  const headers = new Map<string, string>()
  for (const line of fieldLines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).toLowerCase()
    const value = trimSpaces(line.slice(colon + 1))
    if (!isFieldName(name) || !isFieldValue(value)) throw invalidResponse('a header is malformed')
    const earlier = headers.get(name)
    headers.set(name, earlier === undefined ? value : `${earlier}, ${value}`)
  }
  return { status: Number(status), headers, minorVersion: Number(minorVersion) }
}

function trimSpaces(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && isSpaceOrTab(text.charCodeAt(from))) from += 1
  while (to > from && isSpaceOrTab(text.charCodeAt(to - 1))) to -= 1
  return text.slice(from, to)
}

function isSpaceOrTab(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1', from, to)
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Whether a text is a valid header name (RFC 9110, 5.6.2). */
export function isFieldName(text: string): boolean {
  return token.test(text)
}

/** Whether a text is a valid header value: latin-1 without control characters except tab. */
export function isFieldValue(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if ((code < 0x20 && code !== 0x09) || code === 0x7f || code > 0xff) return false
  }
  return true
}
