/** Captured audio that may have to be sent again. Positions are bytes since the recording began. */
export class AudioBuffer {
  /** The end of what was captured. */
  end = 0
  /** Bytes that were dropped before they were sent, because the buffer was full. */
  lost = 0
  #chunks: { readonly at: number; readonly bytes: Uint8Array }[] = []
  readonly #bytesMax: number

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Where the oldest kept byte is. */
  start(): number {
    return this.#chunks[0]?.at ?? this.end
  }

  push(bytes: Uint8Array): void {
    this.#chunks.push({ at: this.end, bytes })
    this.end += bytes.length
    while (this.end - this.start() > this.#bytesMax) {
      this.lost += this.#chunks.shift()?.bytes.length ?? 0
    }
  }

  /** Drops what is not needed again. */
  release(before: number): void {
    while (this.#chunks[0] !== undefined && endOf(this.#chunks[0]) <= before) this.#chunks.shift()
  }

  /** At most so many bytes from a position, of one chunk; empty at the end. */
  read(from: number, bytesMax: number): Uint8Array {
    const chunk = this.#chunks.find((one) => endOf(one) > from)
    if (chunk === undefined || chunk.at > from) return new Uint8Array(0)
    return chunk.bytes.subarray(from - chunk.at, from - chunk.at + bytesMax)
  }
}

function endOf({ at, bytes }: { at: number; bytes: Uint8Array }): number {
  return at + bytes.length
}
