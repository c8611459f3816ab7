/** One part of an item (a text, a summary paragraph) and how much of it was emitted. */
export type Part<Label extends string> = {
  readonly label: Label
  /** The upstream's number of the part; null where it sends none. */
  index: number | null
  sentChars: number
  /** The last piece of text that was emitted. */
  lastPiece: string
  /** The upstream declared it complete. */
  done: boolean
}

export function createPart<Label extends string>(label: Label): Part<Label> {
  return { label, index: null, sentChars: 0, lastPiece: '', done: false }
}

export function recordSent(part: Part<string>, piece: string): void {
  part.sentChars += piece.length
  part.lastPiece = piece
}

/**
 * The end of `whole` that was not emitted; '' when nothing is missing, or when the two contradict
 * each other, since emitted text cannot be retracted.
 */
export function unsentText(part: Part<string>, whole: string): string {
  return extendsPart(part, whole) ? whole.slice(part.sentChars) : ''
}

/**
 * Whether `whole` begins with the emitted text. That text is not kept: its length and the position
 * of its last piece are compared.
 */
export function extendsPart(part: Part<string>, whole: string): boolean {
  const { sentChars, lastPiece } = part
  return whole.length >= sentChars && whole.startsWith(lastPiece, sentChars - lastPiece.length)
}

/** Whether an event with this label and index opens a part other than `current`. */
export function opensNewPart<Label extends string>(
  current: Part<Label>,
  label: Label,
  index: number | null,
): boolean {
  if (current.label !== label || current.done) return true
  return current.index !== null && index !== null && current.index !== index
}
