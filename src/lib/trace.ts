/** W3C trace context (https://www.w3.org/TR/trace-context/): the values of `traceparent` and `tracestate`. */
export type TraceContext = {
  readonly traceparent: string
  readonly tracestate: string | null
  /** The span that further spans are children of; null: the trace is not sampled, or tracing is off. */
  readonly span: Span | null
}

export type SpanValue = string | number | boolean | readonly string[]
/** By their names in the semantic conventions; undefined ones are left out. */
export type SpanAttributes = Readonly<Record<string, SpanValue | null | undefined>>

/** By the roles in the semantic conventions: who starts the work, and who does it. */
export type SpanKind = 'internal' | 'server' | 'client' | 'consumer'

export type SpanStart = {
  readonly kind?: SpanKind
  readonly attributes?: SpanAttributes
  /** By `performance.now()`; absent: now. */
  readonly startedAtMs?: number
}

/** Prompts, outputs and the like are recorded only where the operator wants that. */
export type ContentRules = {
  /** Of one attribute. */
  readonly charsMax: number
  /** Without credentials and what the operator hides. */
  redact(text: string): string
}

/**
 * One step of a sampled request. Work without a span has none of these objects. Methods never throw, and
 * do nothing after the end.
 */
export interface Span extends TraceContext {
  readonly span: Span
  startChild(name: string, start?: SpanStart): Span
  rename(name: string): void
  set(attributes: SpanAttributes): void
  /** How contents are recorded; null: not at all. */
  readonly content: ContentRules | null
  /** `type` is a constant of the program, such as the kind of an `AppError`. */
  fail(type: string, message: string): void
  /** By `performance.now()`; absent: now. Further calls do nothing. */
  end(endedAtMs?: number): void
}

const traceIdStart = 3
const traceIdEnd = 35

export function traceIdOf({ traceparent }: TraceContext): string {
  return traceparent.slice(traceIdStart, traceIdEnd)
}

/** Whether the caller has sampled the trace. */
export function isSampled({ traceparent }: TraceContext): boolean {
  return (Number.parseInt(traceparent.slice(-2), 16) & 1) === 1
}

const traceparentForm =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/
/** The longest `tracestate` that must be passed on (W3C Trace Context, 3.3.1.5). */
const tracestateCharsMax = 512
/** Printable, so that it may be sent again as a header. */
const tracestateForm = /^[\x20-\x7e]+$/

/** Null without a valid `traceparent`. */
export function readTraceContext(headers: Pick<Headers, 'get'>): TraceContext | null {
  const traceparent = headers.get('traceparent')
  return traceparent === null ? null : parseTraceContext(traceparent, headers.get('tracestate'))
}

/** Null if `traceparent` is not valid; an invalid `tracestate` alone is dropped. */
export function parseTraceContext(
  traceparent: string,
  tracestate: string | null,
): TraceContext | null {
  if (!traceparentForm.test(traceparent)) return null
  const isKept =
    tracestate !== null &&
    tracestate.length <= tracestateCharsMax &&
    tracestateForm.test(tracestate)
  return { traceparent, tracestate: isKept ? tracestate : null, span: null }
}
