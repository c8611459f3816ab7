export type ByteReader = ReturnType<typeof createByteReader>

/**
 * Reads bytes that arrive in pieces as one sequence. A piece is kept by reference and only copied if
 * a reader asks for more than has arrived, so at most the largest `peek` is held between pieces.
 */
export function createByteReader() {
  /** The unread rest of previous pieces, which is read first. */
  let held = new Uint8Array(0)
  let heldFrom = 0
  let heldTo = 0
  let piece = new Uint8Array(0)
  let pieceFrom = 0

  const hold = (count: number) => {
    const heldBytes = heldTo - heldFrom
    if (heldFrom + count > held.length) {
      const buffer = count > held.length ? new Uint8Array(Math.max(count, 2 * held.length)) : held
      buffer.set(held.subarray(heldFrom, heldTo))
      held = buffer
      heldFrom = 0
      heldTo = heldBytes
    }
    const taken = Math.min(count - heldBytes, piece.length - pieceFrom)
    held.set(piece.subarray(pieceFrom, pieceFrom + taken), heldTo)
    heldTo += taken
    pieceFrom += taken
  }

  return {
    /** Adds the next piece, after the previous one was read until `peek` returned null. */
    accept(bytes: Uint8Array): void {
      if (pieceFrom < piece.length) hold(heldTo - heldFrom + piece.length - pieceFrom)
      piece = bytes as Uint8Array<ArrayBuffer>
      pieceFrom = 0
    },
    get available(): number {
      return heldTo - heldFrom + piece.length - pieceFrom
    },
    /** The next `count` bytes, valid until the next `peek` or `accept`; null if not all have arrived. */
    peek(count: number): Uint8Array | null {
      if (heldFrom === heldTo && count <= piece.length - pieceFrom) {
        return piece.subarray(pieceFrom, pieceFrom + count)
      }
      if (heldTo - heldFrom < count) hold(count)
      return heldTo - heldFrom < count ? null : held.subarray(heldFrom, heldFrom + count)
    },
    /** Consumes up to `count` bytes and returns how many there were. */
    drop(count: number): number {
      const fromHeld = Math.min(count, heldTo - heldFrom)
      const fromPiece = Math.min(count - fromHeld, piece.length - pieceFrom)
      heldFrom += fromHeld
      pieceFrom += fromPiece
      return fromHeld + fromPiece
    },
  }
}
