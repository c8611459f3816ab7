import { assert } from '#lib/assert.ts'

/**
 * The newest samples of a session, so that they can be given to a fresh engine. Positions are
 * samples from the session's first. Samples are copied in and out, because engines keep what they
 * are given, and decoders use their memory again.
 */
export type ReplayTail = {
  /** The oldest sample that is still here. */
  start(): number
  /** The position after the newest. */
  end(): number
  /** The oldest make room for the newest. */
  append(samples: Int16Array): void
  read(position: number, count: number): Int16Array
  dropBefore(position: number): void
  /** What the blocks take in memory. */
  bytes(): number
}

const blockSamples = 8_192

export function createReplayTail(samplesMax: number): ReplayTail {
  const blocks: Int16Array[] = []
  let blocksStart = 0
  let start = 0
  let end = 0

  const dropBefore = (position: number) => {
    start = Math.min(Math.max(start, position), end)
    while (blocks.length > 0 && blocksStart + blockSamples <= start) {
      blocks.shift()
      blocksStart += blockSamples
    }
    // The last block may go too: the next one begins wherever the samples go on.
    if (blocks.length === 0) blocksStart = end
  }
  const blockAt = (position: number) => {
    const index = Math.floor((position - blocksStart) / blockSamples)
    if (index === blocks.length) blocks.push(new Int16Array(blockSamples))
    const block = blocks[index]
    assert(block !== undefined, 'a sample of the tail lies in one of its blocks')
    return { block, offset: position - blocksStart - index * blockSamples }
  }

  return {
    start: () => start,
    end: () => end,
    append(samples) {
      for (let taken = 0; taken < samples.length; ) {
        const { block, offset } = blockAt(end)
        const isWhole = taken === 0 && samples.length <= blockSamples - offset
        // Most pieces fit as they are, and a view costs more than the copy itself.
        const piece = isWhole ? samples : samples.subarray(taken, taken + blockSamples - offset)
        block.set(piece, offset)
        taken += piece.length
        end += piece.length
      }
      if (end - start > samplesMax) dropBefore(end - samplesMax)
    },
    read(position, count) {
      assert(position >= start && position + count <= end, 'only what is in the tail is read')
      const first = blockAt(position)
      if (first.offset + count <= blockSamples) {
        return first.block.slice(first.offset, first.offset + count)
      }
      const samples = new Int16Array(count)
      for (let filled = 0; filled < count; ) {
        const { block, offset } = blockAt(position + filled)
        const piece = block.subarray(offset, offset + count - filled)
        samples.set(piece, filled)
        filled += piece.length
      }
      return samples
    },
    dropBefore,
    bytes: () => blocks.length * blockSamples * Int16Array.BYTES_PER_ELEMENT,
  }
}
