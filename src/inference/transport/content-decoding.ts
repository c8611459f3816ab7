import { pipeline, Readable, type Transform } from 'node:stream'
import zlib from 'node:zlib'
import { type Chunk, chunkOf, viewOf } from '#inference/transport.ts'
import { AppError } from '#lib/errors.ts'
import { type Failure, PullIterator } from '#lib/pull-iterator.ts'
import { zstdParams } from '#lib/zstd.ts'

const { constants } = zlib

/** The flush at the end makes them emit everything that a body which breaks off contains. */
const decompressors: ReadonlyMap<string, () => Transform> = new Map([
  ['gzip', () => zlib.createUnzip({ finishFlush: constants.Z_SYNC_FLUSH })],
  ['x-gzip', () => zlib.createUnzip({ finishFlush: constants.Z_SYNC_FLUSH })],
  ['deflate', () => zlib.createUnzip({ finishFlush: constants.Z_SYNC_FLUSH })],
  ['br', () => zlib.createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })],
  [
    'zstd',
    () => zlib.createZstdDecompress({ finishFlush: constants.ZSTD_e_flush, params: zstdParams }),
  ],
])

/**
 * The body without its content encoding. Requests ask for none (`accept-encoding: identity`), but some
 * proxies compress nevertheless. Throws `upstream_invalid_answer` for an unknown encoding of a successful
 * response; of any other, the status says enough.
 */
export function decodeContent(
  { status, encoding }: { status: number; encoding: string | null },
  chunks: PullIterator<Chunk>,
): PullIterator<Chunk> {
  if (encoding === null) return chunks
  const name = encoding.trim().toLowerCase()
  if (name === '' || name === 'identity') return chunks
  const createDecompressor = decompressors.get(name)
  if (createDecompressor !== undefined) return new DecodedBody(chunks, createDecompressor())
  if (status < 200 || status > 299) return chunks
  throw new AppError(
    'upstream_invalid_answer',
    'The upstream sent its response in a content encoding that was not requested and is not supported.',
    { cause: { contentEncoding: name } },
  )
}

/** A body that is decompressed as it arrives. A full decompressor pauses its source. */
class DecodedBody extends PullIterator<Chunk> {
  readonly #source: PullIterator<Chunk>
  readonly #decompressor: Transform
  readonly #pieces: AsyncIterator<Uint8Array>
  #failure: Failure = null

  constructor(source: PullIterator<Chunk>, decompressor: Transform) {
    super()
    this.#source = source
    this.#decompressor = decompressor
    this.#pieces = decompressor[Symbol.asyncIterator]()
    const views = Readable.from(this.#readSource(), { highWaterMark: 1 })
    // Errors reach the iterator of the decompressor.
    pipeline(views, decompressor, () => {})
  }

  protected onPull() {
    this.#pieces.next().then(
      (next) => (next.done ? this.emitEnd(this.#failure) : this.emit(chunkOf(next.value))),
      (cause: unknown) => this.emitEnd(this.#failure ?? { error: invalidData(cause) }),
    )
  }

  return(): Promise<IteratorResult<Chunk, undefined>> {
    this.#decompressor.destroy()
    return this.#source.return()
  }

  /** A failure of the source is reported after everything that arrived before it. */
  async *#readSource() {
    try {
      for await (const chunk of this.#source) yield viewOf(chunk)
    } catch (error) {
      this.#failure = { error }
    }
  }
}

function invalidData(cause: unknown): AppError {
  return new AppError(
    'upstream_invalid_answer',
    'The upstream sent a compressed response that cannot be decompressed.',
    { cause },
  )
}
