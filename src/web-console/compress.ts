import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** Content codings in the order of our preference: the smallest result first. */
export const codings = ['br', 'zstd', 'gzip'] as const
export type Coding = (typeof codings)[number]

const zstdLevel = 19
const gzipLevel = 9
const [compressGzip, compressBrotli] = [promisify(gzip), promisify(brotliCompress)]

/** As small as possible, on another thread: it happens once for each file. */
export async function compressWith(
  coding: Coding,
  bytes: Uint8Array,
): Promise<Uint8Array<ArrayBuffer>> {
  switch (coding) {
    case 'br': {
      const quality = constants.BROTLI_MAX_QUALITY
      const params = { [constants.BROTLI_PARAM_QUALITY]: quality }
      return new Uint8Array(await compressBrotli(bytes, { params }))
    }
    case 'zstd':
      return new Uint8Array(await Bun.zstdCompress(bytes, { level: zstdLevel }))
    case 'gzip':
      return new Uint8Array(await compressGzip(bytes, { level: gzipLevel }))
  }
}

/** The best coding that a client accepts; null for none. */
export function chooseCoding(acceptEncoding: string | null): Coding | null {
  if (acceptEncoding === null) return null
  const accepted = new Map(
    acceptEncoding.split(',').map((item) => {
      const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
      return [name, !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))]
    }),
  )
  return codings.find((coding) => accepted.get(coding) === true) ?? null
}
