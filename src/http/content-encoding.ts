import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { AppError } from '#lib/errors.ts'
import { zstdParams } from '#lib/zstd.ts'

/** A body may expand by this factor: JSON compresses to a tenth, bombs to a thousandth. */
const expansionMax = 100
/** Up to this size a body may expand by any factor. */
const anyExpansionBytes = 1_048_576

/**
 * Decompresses a body; `encoding` is the value of `content-encoding`. The output is limited while it
 * is produced, so a decompression bomb costs no more than the limit, and not much more than its own
 * size.
 *
 * Throws `request_too_large` past `bytesMax` or `expansionMax`, `invalid_request` for corrupt data, and
 * `unsupported_encoding` for an unknown encoding or several of them.
 */
export function decompressBody(
  bytes: Uint8Array,
  encoding: string,
  bytesMax: number,
): Uint8Array | Promise<Uint8Array> {
  const decompress = findDecompressor(encoding)
  if (decompress === null) return bytes
  const expandedBytesMax = Math.max(bytes.length * expansionMax, anyExpansionBytes)
  return decompress(bytes, Math.min(bytesMax, expandedBytesMax)).catch((cause: unknown) => {
    if (isTooLong(cause)) throw expandedBytesMax < bytesMax ? bomb() : bodyTooLarge(bytesMax)
    const sentence = `The request body is not valid ${encoding.trim()} data.`
    throw new AppError('invalid_request', sentence, { cause })
  })
}

/** Throws `unsupported_encoding` before the body is read. */
export function checkEncoding(encoding: string): void {
  findDecompressor(encoding)
}

export function bodyTooLarge(bytesMax: number): AppError {
  return new AppError(
    'request_too_large',
    `The request body exceeds the limit of ${bytesMax} bytes.`,
  )
}

function bomb(): AppError {
  return new AppError(
    'request_too_large',
    `The request body expands to more than ${expansionMax} times its size; send it without compression.`,
  )
}

type Decompress = (bytes: Uint8Array, bytesMax: number) => Promise<Uint8Array>

const gunzip = promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.gunzip)
const inflate = promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.inflate)
const brotli = promisify<Uint8Array, zlib.BrotliOptions, Uint8Array>(zlib.brotliDecompress)
const zstd = promisify<Uint8Array, zlib.ZstdOptions, Uint8Array>(zlib.zstdDecompress)

const decompressors: ReadonlyMap<string, Decompress> = new Map<string, Decompress>([
  ['gzip', (bytes, maxOutputLength) => gunzip(bytes, { maxOutputLength })],
  ['x-gzip', (bytes, maxOutputLength) => gunzip(bytes, { maxOutputLength })],
  ['deflate', (bytes, maxOutputLength) => inflate(bytes, { maxOutputLength })],
  ['br', (bytes, maxOutputLength) => brotli(bytes, { maxOutputLength })],
  ['zstd', (bytes, maxOutputLength) => zstd(bytes, { maxOutputLength, params: zstdParams })],
])

/** Null for an identity encoding. */
function findDecompressor(encoding: string): Decompress | null {
  const name = encoding.trim().toLowerCase()
  if (name === '' || name === 'identity') return null
  const decompress = decompressors.get(name)
  if (decompress !== undefined) return decompress
  throw new AppError(
    'unsupported_encoding',
    'Send the request body as gzip, br, zstd or deflate, or without compression.',
  )
}

function isTooLong(error: unknown): boolean {
  return error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}
