import { eventFrame, toLine } from '#http/frame-text.ts'

/** Ends every stream, after its terminal event. */
export const doneFrame = 'data: [DONE]\n\n'

/** Writes the frames of a response. */
export type Frames = Pick<
  FrameWriter,
  'isSilent' | 'frame' | 'lifecycle' | 'delta' | 'next' | 'rewind'
>

/** The parts of a delta frame around its text, created once per block. */
export type DeltaHead = { readonly before: string; readonly after: string }

/** Writes the SSE frames of one response and counts them in `sequence_number`. */
export class FrameWriter {
  /** Whether nobody reads the frames, so that their fields need not be built. */
  readonly isSilent: boolean = false
  #sequence: number

  constructor(first = 0) {
    this.#sequence = first
  }

  frame(type: string, fields: object): string {
    return eventFrame(type, { type, sequence_number: this.#sequence++, ...fields })
  }

  /** A frame with the response, given as JSON on one line. */
  lifecycle(type: string, response: string, fields: object = {}): string {
    const others = toLine(fields).slice(1, -1)
    const end = others === '' ? '' : `,${others}`
    const head = `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++}`
    return `${head},"response":${response}${end}}\n\n`
  }

  /** Hot path: the JSON of a delta is precomputed except for its text. */
  delta(head: DeltaHead, text: string): string {
    return `${head.before}${toLine(text)}${head.after}${this.#sequence++}}\n\n`
  }

  /** The number of the next frame. */
  next(): number {
    return this.#sequence
  }

  /** Sets the number of the next frame, to rewrite the frames from there on. */
  rewind(to: number) {
    this.#sequence = to
  }
}

/** For a response without streaming. */
export const silentFrames: Frames = {
  isSilent: true,
  frame: () => '',
  lifecycle: () => '',
  delta: () => '',
  next: () => 0,
  rewind: () => {},
}

/** `fields` precede `delta`; only the sequence number follows it. */
export function deltaHead(type: string, fields: object): DeltaHead {
  const json = toLine({ type, ...fields })
  return {
    before: `event: ${type}\ndata: ${json.slice(0, -1)},"delta":`,
    after: ',"sequence_number":',
  }
}
