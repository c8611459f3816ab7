import { assert } from '#lib/assert.ts'

const blockSamples = 8_192

/**
 * The newest samples of a session, for replay to a new engine. Positions count samples from the
 * session's first. Samples are copied in and out, because engines keep what they receive and
 * decoders reuse their memory.
 */
export class ReplayBuffer {
  /** The oldest sample that is still available. */
  start = 0
  /** The position after the newest sample. */
  end = 0
  readonly #samplesMax: number
  readonly #blocks: Int16Array[] = []
  #blocksStart = 0

  constructor(samplesMax: number) {
    this.#samplesMax = samplesMax
  }

  /** Adds samples; beyond `samplesMax` the oldest are dropped. */
  append(samples: Int16Array): void {
    for (let taken = 0; taken < samples.length; ) {
      const { block, offset } = this.#blockAt(this.end)
      const fits = taken === 0 && samples.length <= blockSamples - offset
      // Most pieces fit whole, and creating a view costs more than the copy.
      const piece = fits ? samples : samples.subarray(taken, taken + blockSamples - offset)
      block.set(piece, offset)
      taken += piece.length
      this.end += piece.length
    }
    const excess = this.end - this.#samplesMax
    if (excess > this.start) this.dropBefore(excess)
  }

  read(position: number, count: number): Int16Array {
    assert(position >= this.start && position + count <= this.end, 'the samples are buffered')
    const first = this.#blockAt(position)
    if (first.offset + count <= blockSamples) {
      return first.block.slice(first.offset, first.offset + count)
    }
    const samples = new Int16Array(count)
    for (let filled = 0; filled < count; ) {
      const { block, offset } = this.#blockAt(position + filled)
      const piece = block.subarray(offset, offset + count - filled)
      samples.set(piece, filled)
      filled += piece.length
    }
    return samples
  }

  dropBefore(position: number): void {
    this.start = Math.min(Math.max(this.start, position), this.end)
    while (this.#blocks.length > 0 && this.#blocksStart + blockSamples <= this.start) {
      this.#blocks.shift()
      this.#blocksStart += blockSamples
    }
    // With no block left, the next one starts at the next sample.
    if (this.#blocks.length === 0) this.#blocksStart = this.end
  }

  /** Memory of the blocks. */
  bytes(): number {
    return this.#blocks.length * blockSamples * Int16Array.BYTES_PER_ELEMENT
  }

  #blockAt(position: number) {
    const index = Math.floor((position - this.#blocksStart) / blockSamples)
    if (index === this.#blocks.length) this.#blocks.push(new Int16Array(blockSamples))
    const block = this.#blocks[index]
    assert(block !== undefined, 'a buffered sample is in one of the blocks')
    return { block, offset: position - this.#blocksStart - index * blockSamples }
  }
}
