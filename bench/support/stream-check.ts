import { isRecord, parseJson } from '#lib/json.ts'
import type { Protocol } from './mock-frames.ts'
import { createSchedule, type Plan, tokenText } from './plan.ts'
import { type EventReader, eventReaders } from './stream-events.ts'

/** Faults over all streams; all zero in a clean run. */
export type Faults = {
  lost: number
  duplicated: number
  changed: number
  outOfSequence: number
  /** Failed requests and protocol violations. */
  failed: number
  /** Descriptions of the first faults. */
  readonly samples: string[]
}

const samplesMax = 10

export function noFaults(): Faults {
  return { lost: 0, duplicated: 0, changed: 0, outOfSequence: 0, failed: 0, samples: [] }
}

export function noteFault(faults: Faults, sentence: string): void {
  if (faults.samples.length < samplesMax) faults.samples.push(sentence.slice(0, 300))
}

/** Counts failed requests. */
export function noteFailure(faults: Faults, sentence: string, count = 1): void {
  if (count <= 0) return
  faults.failed += count
  noteFault(faults, sentence)
}

export type TokenHandler = {
  /** A token arrived; `latenessMs` against the schedule, `nowMs` wall clock. */
  onToken(latenessMs: number): void
  onHeartbeat(): void
}

type CheckOptions = {
  readonly protocol: Protocol
  readonly plan: Plan
  readonly faults: Faults
  readonly handler: TokenHandler
}

/**
 * Checks every event of one stream: complete frames, sequence numbers (or the event order of a
 * message), each token once, in order and unchanged, exactly one terminal event at the end, and
 * `[DONE]` where the protocol has it.
 */
export class StreamCheck {
  readonly #plan: Plan
  readonly #faults: Faults
  readonly #handler: TokenHandler
  readonly #readEvent: EventReader
  readonly #nextDueMs: () => number
  readonly #endsWithDone: boolean
  #unread = ''
  #text = ''
  #nowMs = 0
  #nextToken = 0
  #startedAtMs = 0
  #terminal = false
  #done = false
  #broken = false
  events = 0

  constructor(options: CheckOptions) {
    this.#plan = options.plan
    this.#faults = options.faults
    this.#handler = options.handler
    this.#nextDueMs = createSchedule(options.plan)
    this.#endsWithDone = options.protocol !== 'messages'
    this.#readEvent = eventReaders[options.protocol]({
      text: (text) => this.#onText(text),
      wholeText: (text, type) => this.#onWholeText(text, type),
      heartbeat: () => this.#handler.onHeartbeat(),
      terminal: (reason) => this.#onTerminal(reason),
      outOfSequence: (sentence) => {
        this.#faults.outOfSequence++
        noteFault(this.#faults, sentence)
      },
      broken: (sentence) => this.#break(sentence),
    })
  }

  push(text: string, nowMs: number): void {
    this.#unread += text
    this.#nowMs = nowMs
    let start = 0
    for (;;) {
      const end = this.#unread.indexOf('\n\n', start)
      if (end === -1) break
      this.#onFrame(this.#unread.slice(start, end))
      start = end + 2
    }
    this.#unread = this.#unread.slice(start)
  }

  /** The body ended; missing tokens count as lost. */
  end(): void {
    if (this.#nextToken < this.#plan.tokens) {
      this.#faults.lost += this.#plan.tokens - this.#nextToken
      noteFault(this.#faults, `ended after ${this.#nextToken} of ${this.#plan.tokens} tokens`)
    }
    if (!this.#terminal) this.#break('the stream has no terminal event')
    else if (this.#endsWithDone && !this.#done) this.#break('the stream has no [DONE]')
    else if (this.#unread !== '') this.#break(`bytes after the last frame: ${this.#unread}`)
  }

  #onFrame(frame: string): void {
    if (frame.startsWith(':')) {
      this.#handler.onHeartbeat()
      return
    }
    this.events++
    if (this.#done) this.#break(`a frame after [DONE]: ${frame}`)
    const nameEnd = frame.startsWith('event: ') ? frame.indexOf('\n') : -1
    const type = frame.slice('event: '.length, Math.max(nameEnd, 0))
    const dataStart = nameEnd + 1 + 'data: '.length
    const data = frame.slice(dataStart)
    if (data === '[DONE]' && this.#endsWithDone) {
      this.#done = true
      return
    }
    const event = frame.startsWith('data: ', nameEnd + 1) ? parseJson(data) : undefined
    if (isRecord(event)) this.#readEvent(type, event)
    else this.#break(`no data line with a JSON object: ${frame}`)
  }

  #onText(text: string): void {
    if (this.#terminal) this.#break('text after the terminal event')
    this.#text += text
    if (this.#nextToken === 0) this.#startedAtMs = Number(/^t0@([\d.]+)/.exec(text)?.[1])
    let position = 0
    while (position < text.length) {
      const expected = tokenText(this.#plan, this.#nextToken, this.#startedAtMs)
      if (!text.startsWith(expected, position)) {
        this.#onWrongText(text.slice(position))
        return
      }
      position += expected.length
      this.#nextToken++
      this.#handler.onToken(this.#nowMs - this.#startedAtMs - this.#nextDueMs())
    }
  }

  /** Classifies a token fault and continues after the last complete token. */
  #onWrongText(text: string): void {
    const words = text.split(' ').filter((word) => word !== '')
    for (const word of words) {
      const index = Number(/^t(\d+)/.exec(word)?.[1] ?? Number.NaN)
      if (Number.isNaN(index)) this.#faults.changed++
      else if (index < this.#nextToken) this.#faults.duplicated++
      else {
        this.#faults.lost += index - this.#nextToken
        for (; this.#nextToken <= index; this.#nextToken++) this.#nextDueMs()
      }
    }
    noteFault(this.#faults, `expected t${this.#nextToken}, got ${text}`)
  }

  #onWholeText(text: unknown, type: string): void {
    if (text === this.#text) return
    this.#faults.changed++
    noteFault(this.#faults, `${type} contains text that differs from the deltas`)
  }

  #onTerminal(reason: string): void {
    if (this.#terminal) this.#break('a second terminal event')
    this.#terminal = true
    if (reason !== 'stop') this.#break(`ended as ${reason}`)
  }

  #break(sentence: string): void {
    noteFault(this.#faults, sentence)
    if (this.#broken) return
    this.#broken = true
    this.#faults.failed++
  }
}
