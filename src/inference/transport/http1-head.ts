import { AppError } from '#lib/errors.ts'

export type ResponseHead = {
  readonly status: number
  readonly headers: ResponseHeaders
  /** The minor version of HTTP/1: 0 or 1. */
  readonly minorVersion: number
}

/** Names in lower case; values of repeated headers are joined by commas. */
type ResponseHeaders = { get(name: string): string | undefined }

const preface = 'HTTP/1.'
/** The most interim responses (1xx) before the final one. */
const interimResponsesMax = 16

/**
 * Reads the head of a response (RFC 9112, 4 and 5), skipping interim responses. Strict: lines end with
 * CRLF, no line folding, no space before a colon.
 */
export class HeadReader {
  /** Set once the head is complete. */
  head: ResponseHead | null = null
  readonly #bytesMax: number
  /** The lines before `#line`. */
  #text = ''
  #line = ''
  #bytesSeen = 0
  #interimResponses = 0

  constructor(limits: { headerBytesMax: number }) {
    this.#bytesMax = limits.headerBytesMax
  }

  /**
   * Reads bytes from `from`. Returns the index after the head once it is complete; -1 while more bytes
   * are needed. Throws an `AppError` (`upstream_invalid_answer`), also when all heads together exceed
   * the limit.
   */
  push(bytes: Buffer, from: number): number {
    return (this.#bytesSeen === 0 && this.#readWhole(bytes, from)) || this.#readLines(bytes, from)
  }

  /** Most heads arrive in one read and are final. Returns 0 for any other. */
  #readWhole(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(headEnd, from) + headEnd.length
    if (end - from < headEnd.length || end - from > this.#bytesMax) return 0
    const text = bytes.toString('latin1', from, end)
    if (!validHead.test(text) || text[statusAt] === '1') return 0
    this.head = headOf(text)
    return end
  }

  #readLines(bytes: Buffer, from: number): number {
    let at = from
    while (true) {
      const lineFeed = bytes.indexOf(0x0a, at)
      const end = lineFeed === -1 ? bytes.length : lineFeed + 1
      const known = this.#line.length
      this.#line += bytes.toString('latin1', at, end)
      this.#bytesSeen += end - at
      if (this.#bytesSeen > this.#bytesMax) throw invalidResponse('the head is too long')
      if (this.#text === '' && known < preface.length) requirePreface(this.#line)
      if (lineFeed === -1) return -1
      at = end
      const line = this.#line
      this.#line = ''
      if (this.#readLine(line)) return at
    }
  }

  /** Returns whether this line completes the head of the final response. */
  #readLine(line: string): boolean {
    if (!line.endsWith('\r\n')) throw invalidResponse('a line of the head does not end with CRLF')
    this.#text += line
    if (line !== '\r\n') return false
    const head = parseHead(this.#text)
    this.#text = ''
    if (head.status >= 200) {
      this.head = head
      return true
    }
    this.#interimResponses += 1
    if (head.status === 101) throw invalidResponse('the protocol was switched without a request')
    if (this.#interimResponses > interimResponsesMax) {
      throw invalidResponse('too many interim responses')
    }
    return false
  }
}

const headEnd = Buffer.from('\r\n\r\n')
const statusAt = 'HTTP/1.1 '.length
const zeroCode = 0x30
const statusLine = /^HTTP\/1\.[01] [1-5]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/
const validHead = new RegExp(
  `${statusLine.source}(?:[!#$%&'*+\\-.^_\`|~0-9A-Za-z]+:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n)*\\r\\n$`,
)

/** The headers in the text of a head. Few of them are read, so they are found when they are asked for. */
class HeaderText implements ResponseHeaders {
  readonly #text: string
  readonly #lowerCase: string

  constructor(text: string) {
    this.#text = text
    this.#lowerCase = text.toLowerCase()
  }

  get(name: string): string | undefined {
    const start = `\n${name}:`
    let value: string | undefined
    let at = this.#lowerCase.indexOf(start)
    while (at !== -1) {
      const from = at + start.length
      const found = this.#text.slice(from, this.#text.indexOf('\r', from)).trim()
      value = value === undefined ? found : `${value}, ${found}`
      at = this.#lowerCase.indexOf(start, from)
    }
    return value
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

function parseHead(text: string): ResponseHead {
  if (validHead.test(text)) return headOf(text)
  const part = statusLine.test(text) ? 'a header' : 'the status line'
  throw invalidResponse(`${part} is malformed`)
}

/** Of a valid text. */
function headOf(text: string): ResponseHead {
  return {
    status: Number(text.slice(statusAt, statusAt + 3)),
    headers: new HeaderText(text),
    minorVersion: text.charCodeAt(preface.length) - zeroCode,
  }
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Whether a text is a valid header name (RFC 9110, 5.6.2). */
export function isFieldName(text: string): boolean {
  return token.test(text)
}

/** Whether a text is a valid header value: latin-1 without control characters except tab. */
export function isFieldValue(text: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(text)
}
