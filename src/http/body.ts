import { AppError } from '#lib/errors.ts'
import type { Exchange } from '#lib/exchange.ts'
import { bodyTooLarge, checkEncoding, decompressBody } from './content-encoding.ts'
import { type BodyDeadlines, readEncodedBody } from './long-body.ts'
import { ShortBody } from './short-body.ts'

export type BodyLimits = { requestBytesMax: number; jsonDepthMax: number }

/**
 * Reading a longer body yields to the event loop between its steps: a body of megabytes takes tens
 * of milliseconds, which would delay every stream.
 */
const longBodyBytes = 131_072
/** A body of at most this length is read at once and has the time of one gap. */
const shortBodyBytes = 4_096

/**
 * What `read` makes of the JSON value of a request body, which may be compressed. The media type is
 * ignored, because clients get it wrong.
 *
 * Throws or rejects with `request_too_large` (before reading, if `content-length` says so), `malformed_json`,
 * `invalid_request` for JSON nested too deep, `client_closed` if the client disconnects,
 * `request_timeout` past a deadline, and the errors of `decompressBody` and of `read`.
 */
export function readJsonBody<T>(
  request: Request,
  limits: BodyLimits & BodyDeadlines,
  { exchange, read }: { exchange?: Pick<Exchange, 'addBytesIn'>; read: (value: unknown) => T },
): Promise<T> {
  const encoding = request.headers.get('content-encoding') ?? 'identity'
  checkEncoding(encoding)
  return readBytes(request, limits, (received) => {
    exchange?.addBytesIn(received.length)
    if (encoding === 'identity' && received.length <= longBodyBytes) {
      requireContent(received, limits)
      return read(parseText(decodeBytes(received), 'The request body'))
    }
    return readLongJson(received, encoding, limits).then(read)
  })
}

/** The bytes of a request body, decompressed. Rejects like `readJsonBody`. */
export async function readRawBody(
  request: Request,
  limits: Pick<BodyLimits, 'requestBytesMax'> & BodyDeadlines,
): Promise<Uint8Array> {
  const encoding = request.headers.get('content-encoding') ?? 'identity'
  checkEncoding(encoding)
  return readBytes(request, limits, (received) =>
    decompressBody(received, encoding, limits.requestBytesMax),
  )
}

async function readLongJson(
  received: Uint8Array,
  encoding: string,
  limits: BodyLimits,
): Promise<unknown> {
  const bytes = await decompressBody(received, encoding, limits.requestBytesMax)
  requireContent(bytes, limits)
  await yieldToEventLoop()
  const value = parseText(decodeBytes(bytes), 'The request body')
  await yieldToEventLoop()
  return value
}

function requireContent(bytes: Uint8Array, limits: Pick<BodyLimits, 'jsonDepthMax'>): void {
  if (bytes.length === 0) {
    throw new AppError('malformed_json', 'The request body is empty; send a JSON object.')
  }
  requireDepth(bytes, limits, 'The request body')
}

function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * The JSON value of a text, such as a WebSocket message. `what` is the subject of the error
 * messages. Throws like `readJsonBody`.
 */
export function readJsonText(
  text: string,
  limits: Pick<BodyLimits, 'jsonDepthMax'>,
  what: string,
): unknown {
  requireDepth(Buffer.from(text), limits, what)
  return parseText(text, what)
}

function readBytes<T>(
  request: Request,
  limits: Pick<BodyLimits, 'requestBytesMax'> & BodyDeadlines,
  finish: (received: Uint8Array) => T | Promise<T>,
): Promise<T> {
  const { requestBytesMax, gapMs, totalMs } = limits
  const contentLength = request.headers.get('content-length')
  if (Number(contentLength) > requestBytesMax) throw bodyTooLarge(requestBytesMax)
  if (contentLength === null || Number(contentLength) > shortBodyBytes) {
    return readChunks(request, limits).then(finish)
  }
  return new ShortBody(request, Math.min(gapMs, totalMs), finish).value
}

async function readChunks(
  request: Request,
  limits: Pick<BodyLimits, 'requestBytesMax'> & BodyDeadlines,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  // A throw cancels the rest of the body.
  for await (const chunk of readEncodedBody(request, limits)) {
    length += chunk.length
    if (length > limits.requestBytesMax) throw bodyTooLarge(limits.requestBytesMax)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
}

const quote = 0x22
const backslash = 0x5c

/**
 * Checked before parsing: a body of brackets takes forty times its size in memory, and later code
 * may recurse over the value.
 */
function requireDepth(
  bytes: Uint8Array,
  { jsonDepthMax }: Pick<BodyLimits, 'jsonDepthMax'>,
  what: string,
): void {
  if (!isNestedDeeper(bytes, jsonDepthMax)) return
  throw new AppError('invalid_request', `${what} is nested deeper than ${jsonDepthMax} levels.`)
}

/** Counts brackets without recursion; the parser validates the rest. */
function isNestedDeeper(bytes: Uint8Array, depthMax: number): boolean {
  let depth = 0
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case quote:
        at = findClosingQuote(bytes, at + 1)
        break
      case 0x5b: // [
      case 0x7b: // {
        depth++
        if (depth > depthMax) return true
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth--
    }
  }
  return false
}

/** Beyond this length of a string, a native search is faster than a loop. */
const shortStringBytes = 32

/** The end of the string that contains `from`, or the end of the bytes. */
function findClosingQuote(bytes: Uint8Array, from: number): number {
  let at = from
  while (at < bytes.length) {
    for (const shortEnd = at + shortStringBytes; at < shortEnd; at++) {
      if (bytes[at] === quote) return at
      if (bytes[at] === backslash) at++
    }
    const found = bytes.indexOf(quote, at)
    if (found === -1) return bytes.length
    let escapesFrom = found
    while (escapesFrom > at && bytes[escapesFrom - 1] === backslash) escapesFrom--
    if ((found - escapesFrom) % 2 === 0) return found
    at = found + 1
  }
  return bytes.length
}

const utf8 = new TextDecoder('utf-8', { fatal: true })
const reasonCharsMax = 120

function decodeBytes(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch (cause) {
    throw new AppError('malformed_json', 'The request body is not valid UTF-8.', { cause })
  }
}

function parseText(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new AppError('malformed_json', `${what} ${describeSyntaxError(cause)}`, { cause })
  }
}

/** The engine names what it expected, sometimes with a piece of the body, but no position. */
function describeSyntaxError(error: unknown): string {
  const reason = error instanceof Error ? error.message.replace(/^JSON Parse error: /, '') : ''
  return `is not valid JSON: ${reason.slice(0, reasonCharsMax)}.`
}
