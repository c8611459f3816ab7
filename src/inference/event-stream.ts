import { AppError } from '#lib/errors.ts'
import type { Chunk } from './transport.ts'
import { Utf8Reader } from './utf8-reader.ts'

/** One server-sent event; `event` is empty if absent. */
export type ServerSentEvent = { readonly event: string; readonly data: string }

/**
 * Parses text/event-stream (WHATWG HTML, 9.2.6) from bytes that may be split anywhere, including inside
 * a character or between CR and LF. Only new bytes are searched, so the cost of an event in many pieces
 * is linear. Throws when an event exceeds `eventBytesMax`.
 */
export class EventStreamParser extends Utf8Reader {
  readonly #eventCharsMax: number
  #line = ''
  #event = ''
  #data: string | null = null
  #skipLineFeed = false

  constructor(limits: { eventBytesMax: number }) {
    super()
    this.#eventCharsMax = limits.eventBytesMax
  }

  /** Returns the events that these bytes complete. */
  push(chunk: Chunk): ServerSentEvent[] {
    const out: ServerSentEvent[] = []
    this.#addText(this.#unifyLineEnds(this.read(chunk)), out)
    return out
  }

  /**
   * Ends the stream. Returns the pending event, since the last blank line may be missing; it may be
   * truncated.
   */
  end(): ServerSentEvent | null {
    const out: ServerSentEvent[] = []
    this.#addText(this.#unifyLineEnds(this.readEnd()), out)
    this.#addLine(this.#line, out)
    this.#line = ''
    this.#addLine('', out)
    return out[0] ?? null
  }

  #addText(added: string, out: ServerSentEvent[]) {
    let from = 0
    for (let to = added.indexOf('\n'); to !== -1; to = added.indexOf('\n', from)) {
      const line = this.#line + added.slice(from, to)
      this.#requireLength(line)
      this.#addLine(line, out)
      this.#line = ''
      from = to + 1
    }
    if (from === added.length) return
    this.#line += from === 0 ? added : added.slice(from)
    this.#requireLength(this.#line)
  }

  #addLine(text: string, out: ServerSentEvent[]) {
    if (text === '') {
      if (this.#data !== null) out.push({ event: this.#event, data: this.#data })
      this.#data = null
      this.#event = ''
    } else if (text.startsWith('data:')) {
      const value = text.slice(text.charCodeAt(5) === space ? 6 : 5)
      this.#data = this.#data === null ? value : `${this.#data}\n${value}`
    } else if (text.startsWith('event:')) {
      this.#event = text.slice(text.charCodeAt(6) === space ? 7 : 6)
    } else if (text === 'data') {
      this.#data = this.#data === null ? '' : `${this.#data}\n`
    }
    // Comments, ids, retry hints and unknown fields are ignored.
  }

  #requireLength(text: string) {
    if (text.length + (this.#data?.length ?? 0) <= this.#eventCharsMax) return
    throw new AppError('upstream_invalid_answer', 'The upstream sent an event that is too long.')
  }

  #unifyLineEnds(text: string): string {
    const rest = this.#skipLineFeed && text.startsWith('\n') ? text.slice(1) : text
    if (text !== '') this.#skipLineFeed = rest.endsWith('\r')
    return rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest
  }
}

const space = 0x20
