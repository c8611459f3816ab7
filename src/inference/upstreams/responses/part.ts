/** One part of an item (a text, a summary paragraph) as far as it was passed on. */
export type Part<Label extends string> = {
  readonly label: Label
  /** As the upstream numbers it, where it does. */
  index: number | null
  sentChars: number
  /** The last piece of text that was passed on. */
  lastPiece: string
  /** The upstream said that it is complete. */
  done: boolean
}

export function createPart<Label extends string>(label: Label): Part<Label> {
  return { label, index: null, sentChars: 0, lastPiece: '', done: false }
}

export function notePiece(part: Part<string>, piece: string): void {
  part.sentChars += piece.length
  part.lastPiece = piece
}

/**
 * What `whole` has beyond that which was passed on; '' when nothing is missing or when the two
 * contradict each other, since what was sent cannot be taken back.
 */
export function missingText(part: Part<string>, whole: string): string {
  return extendsPart(part, whole) ? whole.slice(part.sentChars) : ''
}

/**
 * Whether `whole` begins with what was passed on. That is not kept: its length, and its last piece
 * at its place, tell well enough.
 */
export function extendsPart(part: Part<string>, whole: string): boolean {
  const { sentChars, lastPiece } = part
  return whole.length >= sentChars && whole.startsWith(lastPiece, sentChars - lastPiece.length)
}

/** Whether what is announced or given as this part is another one than `current`. */
export function opensNewPart<Label extends string>(
  current: Part<Label>,
  label: Label,
  index: number | null,
): boolean {
  if (current.label !== label || current.done) return true
  return current.index !== null && index !== null && current.index !== index
}
