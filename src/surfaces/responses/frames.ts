import { eventFrame, toLine } from '#http/frame-text.ts'

/** The end of every stream, after its terminal event. */
export const doneFrame = 'data: [DONE]\n\n'

/** Writes the SSE frames of one response and counts them in `sequence_number`. */
export type FrameWriter = {
  frame(type: string, fields: object): string
  /** A delta whose JSON is known but for its text; this is the hot path of the gateway. */
  delta(head: DeltaHead, text: string): string
  /** The number of the next frame. */
  next(): number
  /** The next frame gets this number: what was written from it on is written anew. */
  rewind(sequence: number): void
}

/** The part of a delta frame before its text, made once a block. */
export type DeltaHead = { readonly before: string; readonly after: string }

export function createFrameWriter(first = 0): FrameWriter {
  let sequence = first
  return {
    frame: (type, fields) => eventFrame(type, { type, sequence_number: sequence++, ...fields }),
    delta: (head, text) => `${head.before}${toLine(text)}${head.after}${sequence++}}\n\n`,
    next: () => sequence,
    rewind(to) {
      sequence = to
    },
  }
}

/** For an answer that is not streamed: nothing is written, so nothing is made. */
export const silentFrames: FrameWriter = {
  frame: () => '',
  delta: () => '',
  next: () => 0,
  rewind: () => {},
}

/** `fields` are those beside `delta`; `after` the text stands only the sequence number. */
export function deltaHead(type: string, fields: object): DeltaHead {
  const json = toLine({ type, ...fields })
  return {
    before: `event: ${type}\ndata: ${json.slice(0, -1)},"delta":`,
    after: ',"sequence_number":',
  }
}
