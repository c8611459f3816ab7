import type { Chunk } from '#inference/chunk.ts'
import { assert } from '#lib/assert.ts'

/** What delivers the chunks. It may be told to pause while it pauses, or to resume while it runs. */
export type ChunkSource = {
  pause(): void
  resume(): void
  /** The consumer wants no more. */
  stop(): void
}

/** What a waiting chunk costs beside its bytes, so that many small ones are bounded as well. */
const chunkOverheadBytes = 128

/**
 * A longer chunk is handed on in pieces of this size. Whatever is made of one piece waits for a
 * slow reader in several forms at once, and a read of a fast upstream brings half a megabyte.
 */
const pieceBytesMax = 65_536

/**
 * Stands between a source that delivers chunks and one consumer that pulls them. It pauses the
 * source once `bytesMax` bytes wait, and resumes it when half of them were taken. A chunk that
 * finds the consumer waiting goes to it directly.
 */
export class ChunkQueue implements AsyncIterableIterator<Chunk> {
  readonly #source: ChunkSource
  readonly #bytesMax: number
  #chunks: Chunk[] = []
  #waitingBytes = 0
  #consumer: Consumer | null = null
  #end: { readonly error: unknown } | 'open' | 'done' = 'open'

  constructor(source: ChunkSource, options: { bytesMax: number }) {
    this.#source = source
    this.#bytesMax = options.bytesMax
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  push(chunk: Chunk) {
    if (this.#end !== 'open') return
    const consumer = this.#consumer
    this.#consumer = null
    if (consumer === null) this.#keep(chunk)
    else if (isPiece(chunk)) consumer.resolve({ done: false, value: chunk })
    else {
      const { piece, rest } = cutPiece(chunk)
      this.#keep(rest)
      consumer.resolve({ done: false, value: piece })
    }
  }

  /** Everything was delivered. */
  complete() {
    if (this.#end !== 'open') return
    this.#end = 'done'
    this.#consumer?.resolve({ done: true, value: undefined })
    this.#consumer = null
  }

  /** The source has failed; what was delivered before can still be pulled. */
  fail(error: unknown) {
    if (this.#end !== 'open') return
    this.#end = { error }
    if (this.#consumer !== null) this.#rejectWith(this.#consumer, error)
  }

  /** The consumer itself has given up: it gets the error now, and nothing else. */
  abort(error: unknown) {
    this.#drop()
    this.fail(error)
  }

  next(): Promise<IteratorResult<Chunk, undefined>> {
    const piece = this.#takePiece()
    if (piece !== undefined) return Promise.resolve({ done: false, value: piece })
    return new Promise((resolve, reject) => {
      assert(this.#consumer === null, 'chunks are pulled one at a time')
      if (this.#end === 'open') this.#consumer = { resolve, reject }
      else if (this.#end === 'done') resolve({ done: true, value: undefined })
      else this.#rejectWith({ resolve, reject }, this.#end.error)
    })
  }

  return(): Promise<IteratorResult<Chunk, undefined>> {
    this.#drop()
    this.complete()
    this.#end = 'done'
    this.#source.stop()
    return Promise.resolve({ done: true, value: undefined })
  }

  #rejectWith(consumer: Consumer, error: unknown) {
    this.#consumer = null
    this.#end = 'done'
    consumer.reject(error)
  }

  #keep(chunk: Chunk) {
    this.#chunks.push(chunk)
    this.#waitingBytes += costOf(chunk)
    if (this.#waitingBytes >= this.#bytesMax) this.#source.pause()
  }

  #takePiece(): Chunk | undefined {
    const [chunk] = this.#chunks
    if (chunk === undefined) return undefined
    if (!isPiece(chunk)) {
      const { piece, rest } = cutPiece(chunk)
      this.#chunks[0] = rest
      return piece
    }
    this.#chunks.shift()
    this.#waitingBytes -= costOf(chunk)
    if (this.#waitingBytes * 2 <= this.#bytesMax) this.#source.resume()
    return chunk
  }

  #drop() {
    this.#chunks = []
    this.#waitingBytes = 0
  }
}

type Consumer = {
  resolve(result: IteratorResult<Chunk, undefined>): void
  reject(error: unknown): void
}

function isPiece({ start, end }: Chunk): boolean {
  return end - start <= pieceBytesMax
}

function cutPiece({ bytes, start, end }: Chunk): { piece: Chunk; rest: Chunk } {
  const cut = start + pieceBytesMax
  return { piece: { bytes, start, end: cut }, rest: { bytes, start: cut, end } }
}

/** A chunk is a part of a whole read, which lives as long as the chunk does. */
function costOf({ bytes }: Chunk): number {
  return bytes.buffer.byteLength + chunkOverheadBytes
}
