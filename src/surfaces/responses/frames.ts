import { eventFrame, toLine } from '#http/frame-text.ts'

/** The end of every stream, after its terminal event. */
export const doneFrame = 'data: [DONE]\n\n'

/** What makes the frames of a response. */
export type Frames = Pick<FrameWriter, 'frame' | 'delta' | 'next' | 'rewind'>

/** The part of a delta frame before its text, made once a block. */
export type DeltaHead = { readonly before: string; readonly after: string }

/** Writes the SSE frames of one response and counts them in `sequence_number`. */
export class FrameWriter {
  #sequence: number

  constructor(first = 0) {
    this.#sequence = first
  }

  frame(type: string, fields: object): string {
    return eventFrame(type, { type, sequence_number: this.#sequence++, ...fields })
  }

  /** A delta whose JSON is known but for its text; this is the hot path of the gateway. */
  delta(head: DeltaHead, text: string): string {
    return `${head.before}${toLine(text)}${head.after}${this.#sequence++}}\n\n`
  }

  /** The number of the next frame. */
  next(): number {
    return this.#sequence
  }

  /** The next frame gets this number: what was written from it on is written anew. */
  rewind(to: number) {
    this.#sequence = to
  }
}

/** For an answer that is not streamed: nothing is written, so nothing is made. */
export const silentFrames: Frames = {
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
