/** Whether a piece of audio is loud; test audio is a tone or zeros. */
const pieceMs = 10

export type Piece = { readonly endMs: number; readonly isLoud: boolean }

/** Splits 16-bit PCM of any chunking into pieces of 10 ms. */
export function createPieces(rateHz: number) {
  const pieceBytes = Math.round((rateHz * pieceMs) / 1000) * 2
  let rest = Buffer.alloc(0)
  let endMs = 0
  return {
    push(bytes: Buffer): Piece[] {
      rest = Buffer.concat([rest, bytes])
      const pieces: Piece[] = []
      for (; rest.length >= pieceBytes; rest = rest.subarray(pieceBytes)) {
        endMs += pieceMs
        pieces.push({ endMs, isLoud: rest.subarray(0, pieceBytes).some((byte) => byte !== 0) })
      }
      return pieces
    },
  }
}
