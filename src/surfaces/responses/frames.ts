import { eventFrame, toLine } from '#http/frame-text.ts'

/** Ends every stream, after its terminal event. */
export const doneFrame = 'data: [DONE]\n\n'

/** Writes the frames of an item. */
export type Frames = Pick<FrameWriter, 'isSilent' | 'frame' | 'delta'>

/** Writes the SSE frames of one response and counts them in `sequence_number`. */
export class FrameWriter {
  /** Of a response without streaming: nobody reads the frames, so they are empty, and fields need not be built. */
  readonly isSilent: boolean
  #sequence: number

  constructor(first = 0, { isSilent = false } = {}) {
    this.#sequence = first
    this.isSilent = isSilent
  }

  frame(type: string, fields: object): string {
    if (this.isSilent) return ''
    return eventFrame(type, { type, sequence_number: this.#sequence++, ...fields })
  }

  /** A frame with the response, given as JSON on one line. */
  lifecycle(type: string, response: string, fields: object = {}): string {
    if (this.isSilent) return ''
    const others = toLine(fields).slice(1, -1)
    const end = others === '' ? '' : `,${others}`
    const head = `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++}`
    return `${head},"response":${response}${end}}\n\n`
  }

  /** Hot path: the JSON of a delta is precomputed up to its text (`deltaHead`). */
  delta(head: string, text: string): string {
    if (this.isSilent) return ''
    return `${head}${toLine(text)},"sequence_number":${this.#sequence++}}\n\n`
  }

  /** The number of the next frame. */
  nextSequence(): number {
    return this.#sequence
  }

  /** Sets the number of the next frame, to rewrite the frames from there on. */
  rewind(to: number) {
    this.#sequence = to
  }
}

/** A delta frame up to its text, created once per block. `fields` precede `delta`. */
export function deltaHead(type: string, fields: object): string {
  const json = toLine({ type, ...fields })
  return `event: ${type}\ndata: ${json.slice(0, -1)},"delta":`
}
