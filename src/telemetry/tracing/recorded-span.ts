import type {
  ContentRules,
  Span,
  SpanAttributes,
  SpanKind,
  SpanStart,
  SpanValue,
} from '#lib/trace.ts'
import { contentNames } from '#lib/trace-content.ts'
import { redact } from '#telemetry/log.ts'
import { randomSpanId } from './random-ids.ts'

/** What all spans of a process share. */
export type SpanSink = {
  readonly content: ContentRules | null
  now(): Date
  ended(span: RecordedSpan): void
}

export type SpanPlace = {
  readonly traceId: string
  /** Null: the first span of its trace. */
  readonly parentId: string | null
  readonly isParentRemote: boolean
  readonly tracestate: string | null
}

/** The longest text of an attribute that has no bound of its own. */
const textCharsMax = 1_024

/** A span of a sampled trace, until it is exported. */
export class RecordedSpan implements Span {
  readonly spanId = randomSpanId()
  readonly place: SpanPlace
  readonly kind: SpanKind
  readonly startedAtMs: number
  /** What `performance.now()` lacks to the Unix time; one for all spans of a trace in this process. */
  readonly epochOffsetMs: number
  readonly attributes: Record<string, SpanValue> = {}
  name: string
  endedAtMs = 0
  failure: { readonly type: string; readonly message: string } | null = null
  readonly #sink: SpanSink

  constructor(
    sink: SpanSink,
    place: SpanPlace,
    name: string,
    start: SpanStart & { readonly epochOffsetMs?: number },
  ) {
    const nowMs = performance.now()
    this.#sink = sink
    this.place = place
    this.name = name
    this.kind = start.kind ?? 'internal'
    this.startedAtMs = start.startedAtMs ?? nowMs
    this.epochOffsetMs = start.epochOffsetMs ?? sink.now().getTime() - nowMs
    if (start.attributes !== undefined) this.set(start.attributes)
  }

  get span(): this {
    return this
  }

  get content(): ContentRules | null {
    return this.#sink.content
  }

  get traceparent(): string {
    return `00-${this.place.traceId}-${this.spanId}-01`
  }

  get tracestate(): string | null {
    return this.place.tracestate
  }

  startChild(name: string, start: SpanStart = {}): Span {
    const { traceId, tracestate } = this.place
    const place = { traceId, tracestate, parentId: this.spanId, isParentRemote: false }
    const { epochOffsetMs } = this
    return new RecordedSpan(this.#sink, place, name, { ...start, epochOffsetMs })
  }

  rename(name: string): void {
    if (this.endedAtMs === 0) this.name = name
  }

  set(attributes: SpanAttributes): void {
    if (this.endedAtMs !== 0) return
    for (const name in attributes) {
      const value = attributes[name]
      if (value === null || value === undefined) continue
      this.attributes[name] =
        typeof value === 'string' && !contentNames.has(name) ? boundedText(value) : value
    }
  }

  fail(type: string, message: string): void {
    if (this.endedAtMs !== 0) return
    this.failure = { type, message: boundedText(message) }
  }

  end(endedAtMs?: number): void {
    if (this.endedAtMs !== 0) return
    this.endedAtMs = Math.max(endedAtMs ?? performance.now(), this.startedAtMs)
    this.#sink.ended(this)
  }
}

/** Names of models and tools come from requests. */
function boundedText(text: string): string {
  return redact(text.length > textCharsMax ? text.slice(0, textCharsMax) : text)
}
