/**
 * Bytes that arrive in pieces, read as if they were one. What has been accepted is kept by reference
 * and copied only where a reader asks for more than has come: so no more than the largest `peek` is
 * ever held from one piece to the next.
 */
export type ByteReader = {
  /** The next piece; the one before it has been read until `peek` found too little. */
  accept(bytes: Uint8Array): void
  readonly available: number
  /** The next `count` bytes without taking them, valid until the next call; null if not all are here. */
  peek(count: number): Uint8Array | null
  /** Takes up to `count` bytes and says how many there were. */
  drop(count: number): number
}

export function createByteReader(): ByteReader {
  /** What is left of the pieces before; it comes first. */
  let held = new Uint8Array(0)
  let heldFrom = 0
  let heldTo = 0
  let piece = new Uint8Array(0)
  let pieceFrom = 0

  const hold = (count: number) => {
    const heldBytes = heldTo - heldFrom
    if (heldFrom + count > held.length) {
      const room = count > held.length ? new Uint8Array(Math.max(count, 2 * held.length)) : held
      room.set(held.subarray(heldFrom, heldTo))
      held = room
      heldFrom = 0
      heldTo = heldBytes
    }
    const taken = Math.min(count - heldBytes, piece.length - pieceFrom)
    held.set(piece.subarray(pieceFrom, pieceFrom + taken), heldTo)
    heldTo += taken
    pieceFrom += taken
  }

  return {
    accept(bytes) {
      if (pieceFrom < piece.length) hold(heldTo - heldFrom + piece.length - pieceFrom)
      piece = bytes as Uint8Array<ArrayBuffer>
      pieceFrom = 0
    },
    get available() {
      return heldTo - heldFrom + piece.length - pieceFrom
    },
    peek(count) {
      if (heldFrom === heldTo && count <= piece.length - pieceFrom) {
        return piece.subarray(pieceFrom, pieceFrom + count)
      }
      if (heldTo - heldFrom < count) hold(count)
      return heldTo - heldFrom < count ? null : held.subarray(heldFrom, heldFrom + count)
    },
    drop(count) {
      const fromHeld = Math.min(count, heldTo - heldFrom)
      const fromPiece = Math.min(count - fromHeld, piece.length - pieceFrom)
      heldFrom += fromHeld
      pieceFrom += fromPiece
      return fromHeld + fromPiece
    },
  }
}
