import { AppError } from '#lib/errors.ts'
import { bodyTooLarge, checkEncoding, unpackBody } from './content-encoding.ts'

export type BodyLimits = { requestBytesMax: number; jsonDepthMax: number }

/**
 * The steps of reading a longer body take turns with what else waits: megabytes take tens of
 * milliseconds from the socket to the upstream, which all streams would notice in one piece.
 */
const longBodyBytes = 131_072

/**
 * The JSON value of a request body, which may be compressed. The media type is not looked at:
 * clients get it wrong.
 *
 * Throws `request_too_large` without reading what the sender announced as too long, `malformed_json`
 * for what is no JSON, `invalid_request` for JSON that is nested too deep, `client_closed` when the
 * client goes away before the end of its body, and what `unpackBody` throws.
 */
export async function readJsonBody(request: Request, limits: BodyLimits): Promise<unknown> {
  const encoding = request.headers.get('content-encoding') ?? 'identity'
  checkEncoding(encoding)
  const packed = await readBytes(request, limits.requestBytesMax)
  const bytes = await unpackBody(packed, encoding, limits.requestBytesMax)
  if (bytes.length === 0) {
    throw new AppError('malformed_json', 'The request body is empty; send a JSON object.')
  }
  const isLong = bytes.length > longBodyBytes
  refuseDeeper(bytes, limits, 'The request body')
  if (isLong) await nextTurn()
  const value = parseText(decodeBytes(bytes), 'The request body')
  if (isLong) await nextTurn()
  return value
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * The JSON value of a text that came in another way than as a body; `what` begins the sentences of
 * the errors, which are those of `readJsonBody`.
 */
export function readJsonText(
  text: string,
  limits: Pick<BodyLimits, 'jsonDepthMax'>,
  what: string,
): unknown {
  refuseDeeper(Buffer.from(text), limits, what)
  return parseText(text, what)
}

async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array> {
  const announced = request.headers.get('content-length')
  if (announced !== null && Number(announced) > bytesMax) throw bodyTooLarge(bytesMax)
  if (request.body === null) return new Uint8Array(0)
  try {
    // Where HTTP framing bounds the length, one native read does; a stream costs 0.1 ms more.
    return announced === null
      ? await readChunks(request.body, bytesMax)
      : new Uint8Array(await request.arrayBuffer())
  } catch (cause) {
    if (!request.signal.aborted) throw cause
    const sentence = 'The client went away while it was sending the request body.'
    throw new AppError('client_closed', sentence, { cause })
  }
}

async function readChunks(body: ReadableStream<Uint8Array>, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  // Leaving the loop cancels the rest of the body.
  for await (const chunk of body) {
    length += chunk.length
    if (length > bytesMax) throw bodyTooLarge(bytesMax)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
}

const quote = 0x22
const backslash = 0x5c

/**
 * Before parsing: a body of brackets alone would take some forty times its size in memory, and what
 * walks the value later may recurse.
 */
function refuseDeeper(
  bytes: Uint8Array,
  { jsonDepthMax }: Pick<BodyLimits, 'jsonDepthMax'>,
  what: string,
): void {
  if (!isNestedDeeper(bytes, jsonDepthMax)) return
  throw new AppError('invalid_request', `${what} is nested deeper than ${jsonDepthMax} levels.`)
}

/** Never recurses and looks at brackets alone: whether the rest is JSON is the parser's matter. */
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

/** Past this length of a string, a native search is faster than our own loop. */
const shortStringBytes = 32

/** Where the string that is open at `from` ends; the end of the bytes where it does not. */
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

/** The engine tells what it expected, sometimes with a piece of the body, but never where. */
function describeSyntaxError(error: unknown): string {
  const reason = error instanceof Error ? error.message.replace(/^JSON Parse error: /, '') : ''
  return `is not valid JSON: ${reason.slice(0, reasonCharsMax)}.`
}
