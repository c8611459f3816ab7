import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { AppError } from '#lib/errors.ts'

/**
 * The bytes of a body without its compression; `encoding` is the value of `content-encoding`. What
 * it unpacks to is bounded while it is unpacked, so a bomb costs no more than the limit.
 *
 * Throws `request_too_large` past `bytesMax`, `invalid_request` for bytes that are not what they say
 * they are, and `unsupported_encoding` for an encoding that is not known, or for several at once.
 */
export async function unpackBody(
  bytes: Uint8Array,
  encoding: string,
  bytesMax: number,
): Promise<Uint8Array> {
  const unpack = findUnpacker(encoding)
  if (unpack === null) return bytes
  try {
    return await unpack(bytes, bytesMax)
  } catch (cause) {
    if (isTooLong(cause)) throw bodyTooLarge(bytesMax)
    const sentence = `The request body is not valid ${encoding.trim()} data.`
    throw new AppError('invalid_request', sentence, { cause })
  }
}

/** Throws where a body of this encoding could not be read, so that nobody waits for its bytes. */
export function checkEncoding(encoding: string): void {
  findUnpacker(encoding)
}

export function bodyTooLarge(bytesMax: number): AppError {
  return new AppError(
    'request_too_large',
    `The request body is longer than ${bytesMax} bytes, which is the limit.`,
  )
}

type Unpack = (bytes: Uint8Array, bytesMax: number) => Promise<Uint8Array>

/** RFC 9659: a frame that needs a larger window (8 MiB) is not for HTTP. */
const zstdWindowLogMax = 23

const gunzip = promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.gunzip)
const inflate = promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.inflate)
const brotli = promisify<Uint8Array, zlib.BrotliOptions, Uint8Array>(zlib.brotliDecompress)
const zstd = promisify<Uint8Array, zlib.ZstdOptions, Uint8Array>(zlib.zstdDecompress)
const zstdParams = { [zlib.constants.ZSTD_d_windowLogMax]: zstdWindowLogMax }

const unpackers: ReadonlyMap<string, Unpack> = new Map<string, Unpack>([
  ['gzip', (bytes, maxOutputLength) => gunzip(bytes, { maxOutputLength })],
  ['x-gzip', (bytes, maxOutputLength) => gunzip(bytes, { maxOutputLength })],
  ['deflate', (bytes, maxOutputLength) => inflate(bytes, { maxOutputLength })],
  ['br', (bytes, maxOutputLength) => brotli(bytes, { maxOutputLength })],
  ['zstd', (bytes, maxOutputLength) => zstd(bytes, { maxOutputLength, params: zstdParams })],
])

/** null: the bytes are what they are. */
function findUnpacker(encoding: string): Unpack | null {
  const name = encoding.trim().toLowerCase()
  if (name === '' || name === 'identity') return null
  const unpack = unpackers.get(name)
  if (unpack !== undefined) return unpack
  throw new AppError(
    'unsupported_encoding',
    'Send the request body as gzip, br, zstd or deflate, or without compression.',
  )
}

function isTooLong(error: unknown): boolean {
  return error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}
