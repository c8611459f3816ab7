import type { Chunk } from '#inference/transport.ts'
import { type Failure, PullIterator } from '#lib/pull-iterator.ts'
import { processTurn, type Turn } from './turn.ts'

type ChunkQueueOptions = {
  readonly bytesMax: number
  readonly turn?: Turn
}

/** The overhead of a queued chunk, so that many small chunks are limited as well. */
const chunkOverheadBytes = 128

/**
 * Longer chunks are split into pieces of this size. Everything decoded from one piece waits for a slow
 * reader in several forms, and a read of a fast upstream has half a megabyte. Streams that flood take
 * turns piece by piece.
 */
const pieceBytesMax = 16_384

/**
 * A bounded queue between a source that pushes chunks and a consumer that pulls them. It pauses the
 * source at `bytesMax` queued bytes, and resumes it at half of that. A chunk that arrives during a pull
 * is delivered directly; everything else in a microtask, so that pulls do not recurse. After the turn
 * is over, chunks wait for the next one, and the source pauses. A source extends it: with an object of
 * its own, each read would load two into the cache.
 */
export abstract class ChunkQueue extends PullIterator<Chunk> {
  readonly #bytesMax: number
  readonly #turn: Turn
  #chunks: Chunk[] = []
  /** Of all chunks with their overhead: 0 only without any. */
  #queuedBytes = 0
  #end: NonNullable<Failure> | 'open' | 'done' = 'open'

  constructor({ bytesMax, turn = processTurn }: ChunkQueueOptions) {
    super()
    this.#bytesMax = bytesMax
    this.#turn = turn
  }

  /** Idempotent, as `resumeSource`. */
  protected abstract pauseSource(): void

  protected abstract resumeSource(): void

  /** The consumer cancelled. */
  protected abstract stopSource(): void

  push(chunk: Chunk) {
    if (this.#end !== 'open') return
    const isOver = this.#turn.isOver()
    // The list itself would be cold in cache.
    if (this.isPending && this.#queuedBytes === 0 && isPiece(chunk) && !isOver) {
      this.#emitPiece(chunk)
      return
    }
    this.#chunks.push(chunk)
    this.#queuedBytes += memoryOf(chunk)
    if (isOver || this.#queuedBytes >= this.#bytesMax) this.pauseSource()
    this.#deliverLater()
  }

  /** The source has delivered everything. */
  complete() {
    if (this.#end !== 'open') return
    this.#end = 'done'
    this.#deliverLater()
  }

  /** The source failed; queued chunks can still be pulled. */
  fail(error: unknown) {
    if (this.#end !== 'open') return
    this.#end = { error }
    this.#deliverLater()
  }

  /** The consumer aborted: it receives the error immediately, and queued chunks are dropped. */
  abort(error: unknown) {
    this.#clear()
    this.fail(error)
  }

  protected onPull() {
    if (this.#queuedBytes > 0 || this.#end !== 'open') this.#deliverLater()
  }

  return(): Promise<IteratorResult<Chunk, undefined>> {
    this.#clear()
    this.#end = 'done'
    this.#deliverLater()
    this.stopSource()
    return Promise.resolve({ done: true, value: undefined })
  }

  #deliverLater() {
    if (this.isPending) queueMicrotask(() => this.deliver())
  }

  /** Serves the pending pull, in this turn or a later one. */
  deliver() {
    if (!this.isPending) return
    if (this.#chunks.length > 0 && this.#turn.isOver()) {
      this.#turn.wait(this)
      return
    }
    const piece = this.#takePiece()
    if (piece !== undefined) this.#emitPiece(piece)
    else if (this.#end !== 'open') {
      const failure = this.#end === 'done' ? null : this.#end
      this.#end = 'done'
      this.emitEnd(failure)
    }
  }

  #emitPiece(piece: Chunk) {
    this.#turn.spend(piece.end - piece.start)
    this.emit(piece)
  }

  #takePiece(): Chunk | undefined {
    const [chunk] = this.#chunks
    if (chunk === undefined) return undefined
    if (!isPiece(chunk)) {
      const { bytes, start, end } = chunk
      const cut = start + pieceBytesMax
      this.#chunks[0] = { bytes, start: cut, end }
      return { bytes, start, end: cut }
    }
    this.#chunks.shift()
    this.#queuedBytes -= memoryOf(chunk)
    if (this.#queuedBytes * 2 <= this.#bytesMax) this.resumeSource()
    return chunk
  }

  #clear() {
    this.#chunks = []
    this.#queuedBytes = 0
  }
}

function isPiece({ start, end }: Chunk): boolean {
  return end - start <= pieceBytesMax
}

/** A chunk keeps the whole read buffer in memory. */
function memoryOf({ bytes }: Chunk): number {
  return bytes.buffer.byteLength + chunkOverheadBytes
}
