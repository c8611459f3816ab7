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
    this.#addLine(this.#line, 0, this.#line.length, out)
    this.#line = ''
    this.#addLine('', 0, 0, out)
    return out[0] ?? null
  }

  #addText(added: string, out: ServerSentEvent[]) {
    let from = 0
    for (let to = added.indexOf('\n'); to !== -1; to = added.indexOf('\n', from)) {
      if (this.#line === '') this.#addLine(added, from, to, out)
      else {
        const line = this.#line + added.slice(from, to)
        this.#line = ''
        this.#addLine(line, 0, line.length, out)
      }
      from = to + 1
    }
    if (from === added.length) return
    this.#line += from === 0 ? added : added.slice(from)
    this.#requireLength(this.#line.length)
  }

  /** A range of a text, since a string for each line would only be cut again. */
  #addLine(text: string, from: number, to: number, out: ServerSentEvent[]) {
    this.#requireLength(to - from)
    if (from === to) {
      if (this.#data !== null) out.push({ event: this.#event, data: this.#data })
      this.#data = null
      this.#event = ''
    } else if (text.startsWith('data:', from)) {
      const value = text.slice(text.charCodeAt(from + 5) === space ? from + 6 : from + 5, to)
      this.#data = this.#data === null ? value : `${this.#data}\n${value}`
    } else if (text.startsWith('event:', from)) {
      this.#event = text.slice(text.charCodeAt(from + 6) === space ? from + 7 : from + 6, to)
    } else if (to - from === 4 && text.startsWith('data', from)) {
      this.#data = this.#data === null ? '' : `${this.#data}\n`
    }
    // Comments, ids, retry hints and unknown fields are ignored.
  }

  #requireLength(chars: number) {
    if (chars + (this.#data?.length ?? 0) <= this.#eventCharsMax) return
    throw new AppError('upstream_invalid_answer', 'The upstream sent an event that is too long.')
  }

  #unifyLineEnds(text: string): string {
    const rest = this.#skipLineFeed && text.startsWith('\n') ? text.slice(1) : text
    if (text !== '') this.#skipLineFeed = rest.endsWith('\r')
    return rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest
  }
}

const space = 0x20
