import {
  isSampled,
  readTraceContext,
  type SpanStart,
  type TraceContext,
  traceIdOf,
} from '#lib/trace.ts'
import { hexOf, randomSpanId, randomWord } from './random-ids.ts'
import { RecordedSpan, type SpanPlace, type SpanSink } from './recorded-span.ts'
import type { Sampler } from './sampler.ts'

/**
 * Begins traces and continues those of callers. The decision whether to sample is made here, once;
 * `start` is called for sampled traces only.
 */
export type Tracer = {
  /** The trace of a request that arrived with these headers. */
  accept(headers: Pick<Headers, 'get'>, name: string, start: () => SpanStart): TraceContext
  /** Of work that continues an earlier request, or belongs to none. */
  begin(parent: TraceContext | null, name: string, start: () => SpanStart): TraceContext
}

export function createTracer(sampler: Sampler, sink: SpanSink): Tracer {
  const begin: Tracer['begin'] = (parent, name, start) => {
    if (parent === null) {
      const first = randomWord()
      if (!sampler.sampleRoot(first)) return new UnsampledTrace(first)
      const place = { parentId: null, isParentRemote: false, tracestate: null }
      return new RecordedSpan(sink, { ...place, traceId: traceIdFrom(first) }, name, start())
    }
    if (!sampler.sampleChild(parent)) return isSampled(parent) ? unsampled(parent) : parent
    return new RecordedSpan(sink, placeUnder(parent), name, start())
  }
  return { begin, accept: (headers, name, start) => begin(readTraceContext(headers), name, start) }
}

const traceparentParts = { parentIdStart: 36, parentIdEnd: 52 }

function placeUnder(parent: TraceContext): SpanPlace {
  const { parentIdStart, parentIdEnd } = traceparentParts
  return {
    traceId: traceIdOf(parent),
    parentId: parent.traceparent.slice(parentIdStart, parentIdEnd),
    isParentRemote: true,
    tracestate: parent.tracestate,
  }
}

function unsampled({ traceparent, tracestate }: TraceContext): TraceContext {
  return { traceparent: `${traceparent.slice(0, -2)}00`, tracestate, span: null }
}

/** The second word is never zero, so the id is valid. */
function traceIdFrom(first: number): string {
  return hexOf(first) + hexOf(randomWord() | 1) + hexOf(randomWord()) + hexOf(randomWord())
}

/**
 * A trace that begins here and is not kept. Upstreams learn that they need not keep it either; without
 * any, each would begin one of its own. Its ids are made when they are asked for.
 */
class UnsampledTrace implements TraceContext {
  readonly tracestate = null
  readonly span = null
  readonly #first: number
  #traceparent: string | null = null

  constructor(first: number) {
    this.#first = first
  }

  get traceparent(): string {
    this.#traceparent ??= `00-${traceIdFrom(this.#first)}-${randomSpanId()}-00`
    return this.#traceparent
  }
}
