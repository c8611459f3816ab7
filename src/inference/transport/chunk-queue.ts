import type { Chunk } from '#inference/transport.ts'
import { type Failure, PullIterator } from '#lib/pull-iterator.ts'

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
 * finds the consumer waiting goes to it directly; all else is told in a turn of its own, so that who
 * takes one piece and asks for the next does not pile up calls.
 */
export class ChunkQueue extends PullIterator<Chunk> {
  readonly #source: ChunkSource
  readonly #bytesMax: number
  #chunks: Chunk[] = []
  #waitingBytes = 0
  #end: NonNullable<Failure> | 'open' | 'done' = 'open'

  constructor(source: ChunkSource, options: { bytesMax: number }) {
    super()
    this.#source = source
    this.#bytesMax = options.bytesMax
  }

  push(chunk: Chunk) {
    if (this.#end !== 'open') return
    if (!this.isPending || this.#chunks.length > 0) this.#keep(chunk)
    else if (isPiece(chunk)) this.emit(chunk)
    else {
      const { piece, rest } = cutPiece(chunk)
      this.#keep(rest)
      this.emit(piece)
    }
  }

  /** Everything was delivered. */
  complete() {
    if (this.#end !== 'open') return
    this.#end = 'done'
    this.#answerSoon()
  }

  /** The source has failed; what was delivered before can still be pulled. */
  fail(error: unknown) {
    if (this.#end !== 'open') return
    this.#end = { error }
    this.#answerSoon()
  }

  /** The consumer itself has given up: it gets the error now, and nothing else. */
  abort(error: unknown) {
    this.#drop()
    this.fail(error)
  }

  protected onPull() {
    if (this.#chunks.length > 0 || this.#end !== 'open') this.#answerSoon()
  }

  return(): Promise<IteratorResult<Chunk, undefined>> {
    this.#drop()
    this.#end = 'done'
    this.#answerSoon()
    this.#source.stop()
    return Promise.resolve({ done: true, value: undefined })
  }

  #answerSoon() {
    if (this.isPending) queueMicrotask(() => this.#answer())
  }

  /** Tells whoever waits what there is to tell, unless that was done meanwhile. */
  #answer() {
    if (!this.isPending) return
    const piece = this.#takePiece()
    if (piece !== undefined) this.emit(piece)
    else if (this.#end !== 'open') {
      const failure = this.#end === 'done' ? null : this.#end
      this.#end = 'done'
      this.emitEnd(failure)
    }
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
