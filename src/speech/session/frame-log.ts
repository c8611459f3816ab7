/** The last frames of a session, for a client that lost its connection. */
export type FrameLog = {
  add(seq: number, text: string): void
  /** The kept frames behind this number. */
  after(seq: number): readonly string[]
  /** The number of the last frame that was forgotten; 0: none. */
  forgottenSeq(): number
  chars(): number
}

/** Keeps at most `charsMax` characters; the oldest frames go first. */
export function createFrameLog(charsMax: number): FrameLog {
  const kept: { readonly seq: number; readonly text: string }[] = []
  let chars = 0
  let forgottenSeq = 0
  return {
    add(seq, text) {
      kept.push({ seq, text })
      chars += text.length
      while (chars > charsMax) {
        const oldest = kept.shift()
        if (oldest === undefined) return
        chars -= oldest.text.length
        forgottenSeq = oldest.seq
      }
    },
    after: (seq) => kept.filter((frame) => frame.seq > seq).map(({ text }) => text),
    forgottenSeq: () => forgottenSeq,
    chars: () => chars,
  }
}
