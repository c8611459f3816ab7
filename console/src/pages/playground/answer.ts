import { type Signal, signal } from '@preact/signals'
import type { JsonObject, Surface } from './surface.ts'

export type Source = { readonly title: string; readonly url?: string; readonly quote?: string }

/** One piece of an answer, as both surfaces have it. */
export type Part =
  | { readonly kind: 'reasoning'; readonly key: string; text: string }
  | { readonly kind: 'refusal'; readonly key: string; text: string }
  | { readonly kind: 'text'; readonly key: string; text: string; readonly sources: Source[] }
  | {
      readonly kind: 'call'
      readonly key: string
      readonly callId: string
      readonly name: string
      args: string
      /** The result that the user gave. */
      output?: string
    }
  | {
      readonly kind: 'step'
      readonly key: string
      readonly name: string
      detail: string
      state: string
    }
  | { readonly kind: 'image'; readonly key: string; base64: string }

export type AnswerStatus =
  | 'waiting'
  | 'streaming'
  | 'completed'
  | 'incomplete'
  | 'failed'
  | 'stopped'
  /** The page was left, and the stream cannot be resumed. */
  | 'interrupted'

/** `status` and `requestId` are known of a request that was refused, not of a stream that broke off. */
export type Failure = {
  readonly message: string
  readonly code: string
  readonly status?: number
  readonly requestId?: string | null
}

export type RawEvent = {
  readonly number: number
  readonly at: number
  readonly event: string
  readonly data: string
}

export type Usage = {
  readonly input: number
  readonly output: number
  readonly reasoning: number
  readonly cached: number
}

/** An answer as it grows. It is changed in place; `version` tells its view, once per frame. */
export type Answer = {
  readonly surface: Surface
  readonly model: string
  responseId: string | null
  readonly parts: Part[]
  /** The content blocks of the Messages surface, which go back with the next turn. */
  readonly blocks: JsonObject[]
  status: AnswerStatus
  why: string | null
  error: Failure | null
  usage: Usage | null
  sentAt: number
  firstAt: number | null
  endedAt: number | null
  readonly events: RawEvent[]
  eventCount: number
  isResumed: boolean
  readonly request: JsonObject
  readonly version: Signal<number>
}

/** Older events are dropped from the view; the stream itself is not affected. */
const eventsMax = 2_000

export function newAnswer(given: Pick<Answer, 'surface' | 'model' | 'request'>): Answer {
  return {
    ...given,
    responseId: null,
    parts: [],
    blocks: [],
    status: 'waiting',
    why: null,
    error: null,
    usage: null,
    sentAt: performance.now(),
    firstAt: null,
    endedAt: null,
    events: [],
    eventCount: 0,
    isResumed: false,
    version: signal(0),
  }
}

export function isRunning({ status }: Answer): boolean {
  return status === 'waiting' || status === 'streaming'
}

export function record(answer: Answer, event: string, data: string): void {
  answer.eventCount += 1
  answer.events.push({
    number: answer.eventCount,
    at: performance.now() - answer.sentAt,
    event,
    data,
  })
  if (answer.events.length > eventsMax) answer.events.splice(0, eventsMax / 4)
}

/** The part of a key; created when it first appears. */
export function partOf<Kind extends Part['kind']>(
  answer: Answer,
  kind: Kind,
  key: string,
  create: () => Extract<Part, { kind: Kind }>,
): Extract<Part, { kind: Kind }> {
  const found = answer.parts.find((part) => part.key === key)
  if (found?.kind === kind) return found as Extract<Part, { kind: Kind }>
  const part = create()
  answer.parts.push(part)
  return part
}

export function markFirst(answer: Answer): void {
  answer.status = 'streaming'
  answer.firstAt ??= performance.now()
}

export function end(answer: Answer, status: AnswerStatus): void {
  answer.status = status
  answer.endedAt = performance.now()
}

/** Asks for one more rendering in the next frame, however many events arrive until then. */
export function createRefresh(answer: Answer): () => void {
  let isPending = false
  return () => {
    if (isPending) return
    isPending = true
    // A hidden page has no frames.
    const schedule = document.hidden ? setTimeout : requestAnimationFrame
    schedule(() => {
      isPending = false
      answer.version.value += 1
    })
  }
}
