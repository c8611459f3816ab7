import { AppError } from '#lib/errors.ts'
import { createLru } from '#lib/lru.ts'
import { type Failure, PullIterator, type Subscriber } from '#lib/pull-iterator.ts'
import { orAfter } from '#lib/time-limit.ts'
import type { ServerSentEvent } from './event-stream.ts'
import { type EventBatch, type GenerationEvent, type Relay, withRelay } from './events.ts'
import { StreamedBody } from './streamed-body.ts'
import type { Chunk, UpstreamHttpResponse } from './transport.ts'
import type { AdapterContext } from './upstream.ts'
import { hideUpstreamIn, refusalText } from './upstream-error.ts'
import { targetName } from './upstream-fields.ts'
import {
  isSuccess,
  type RelayError,
  readRefusal,
  readText,
  requestHeaders,
  urlOf,
} from './upstream-http.ts'

/**
 * Turns the response of one upstream into events; a pure closure without network or time.
 * Every method appends to `out`, and throws an `AppError` when the upstream reports a failure or the
 * stream is broken; events appended before the throw remain valid.
 */
export type Decoder = {
  /** One event of a stream. An event that the protocol does not define never ends the generation. */
  push(event: ServerSentEvent, out: GenerationEvent[]): void
  /** The JSON body of a response that is not streamed. */
  pushBody(body: string, out: GenerationEvent[]): void
  /** The body has ended: finish, or throw `upstream_truncated`. Does nothing once done. */
  end(out: GenerationEvent[]): void
  /**
   * `open`: more is expected. `finishing`: the model is done, only trailing data such as usage may
   * follow. `done`: `finish` was emitted; later messages are ignored.
   */
  readonly state: 'open' | 'finishing' | 'done'
  /** Frames for a client of the same protocol since the last call. */
  takeRelay?(): Relay | undefined
}

/** A request body, and the decoder of its response. */
export type PreparedRequest = {
  readonly body: string
  readonly decoder: Decoder
  /** Replaces `requestHeaders`. */
  readonly headers?: Readonly<Record<string, string>>
  readonly relayError?: RelayError
  /** Called when the upstream accepted the request. */
  readonly accepted?: () => void
  /** The request to send instead of one that the upstream refused; null: the refusal stands. */
  readonly afterRefusal?: (refusal: AppError) => PreparedRequest | null
}

type Answered = { readonly response: UpstreamHttpResponse; readonly decoder: Decoder }

const streamingTargetsMax = 1_024
/** Targets that refused a request without streaming. */
const streamingTargets = createLru<string, true>(streamingTargetsMax)

/** How much of an unreadable response is kept for the log. */
const causeCharsMax = 500
const jsonBodyBytesMax = 67_108_864
/** The time for trailing usage, or for the end of the body, once the model is done. */
const lingerMs = 2_000

/**
 * POSTs a generation to an upstream and decodes its response, one batch per read. An empty batch means
 * that bytes arrived without a whole event. Follows the contract of `Adapter.generate`: `prepare` runs
 * at the first pull, so a request that cannot be encoded fails like every other failure.
 */
export class HttpGeneration extends PullIterator<EventBatch> implements Subscriber<Chunk> {
  readonly #context: AdapterContext
  readonly #path: string
  readonly #prepare: (streamed: boolean) => PreparedRequest
  #phase: 'new' | 'open' | 'closed' = 'new'
  #body: StreamedBody | null = null
  /** Set when the last batch was emitted: how the sequence ends at the next pull. */
  #ending: Failure | undefined

  constructor(
    context: AdapterContext,
    path: string,
    prepare: (streamed: boolean) => PreparedRequest,
  ) {
    super()
    this.#context = context
    this.#path = path
    this.#prepare = prepare
  }

  protected onPull() {
    if (this.#phase === 'new') this.#start()
    else if (this.#ending !== undefined || this.#body === null) this.#close(this.#ending ?? null)
    else this.#read(this.#body)
  }

  onNext(chunk: Chunk) {
    const body = this.#body
    if (body === null) return
    const out: GenerationEvent[] = []
    this.#deliver(body.decoder, out, body.decode(chunk, out))
  }

  onError(error: unknown) {
    if (this.#body !== null) this.#close({ error })
  }

  onComplete() {
    const body = this.#body
    if (body === null) return
    const out: GenerationEvent[] = []
    this.#ending = null
    this.#deliver(body.decoder, out, body.decodeEnd(out))
  }

  return(): Promise<IteratorResult<EventBatch, undefined>> {
    this.#close(null)
    return Promise.resolve({ done: true, value: undefined })
  }

  #start() {
    this.#phase = 'open'
    this.#request().then(
      (answered) => this.#answered(answered),
      (error: unknown) => this.#close({ error }),
    )
  }

  /** A response that is not a stream is read and decoded completely. */
  #answered({ response, decoder }: Answered) {
    if (isEventStream(response)) {
      this.#body = new StreamedBody(response.chunks, decoder, this.#context.limits)
      if (this.#phase === 'closed') this.#close(null)
      else this.#read(this.#body)
      return
    }
    const body = readText(response, jsonBodyBytesMax)
    if (typeof body === 'string') this.#decode(body, decoder)
    else {
      const fail = (error: unknown) => this.#close({ error })
      body.then((text) => this.#decode(text, decoder), fail)
    }
  }

  #decode(body: string, decoder: Decoder) {
    if (this.#phase === 'closed') return
    const out: GenerationEvent[] = []
    this.#deliver(decoder, out, decodeBody(body, decoder, out))
  }

  /**
   * Requests a whole response where no events are needed, unless the target only streams. A refused
   * request is sent again if that can help.
   */
  async #request(): Promise<Answered> {
    const { identity, transport, upstream, signal } = this.#context
    const target = targetName(this.#context)
    let streamed = this.#context.streamed || streamingTargets.get(target) === true
    let prepared = this.#prepare(streamed)
    let isLearned = true
    while (true) {
      const { body, decoder, headers, relayError } = prepared
      const response = await transport.send({
        upstream: upstream.name,
        url: urlOf(upstream, this.#path),
        method: 'POST',
        headers: headers ?? requestHeaders(upstream, acceptOf(streamed)),
        body,
        identity,
        signal,
      })
      identity?.trace?.span?.set({ 'http.response.status_code': response.status })
      if (isSuccess(response)) {
        prepared.accepted?.()
        if (!isLearned) streamingTargets.set(target, true)
        return { response, decoder }
      }
      const refusal = await readRefusal(response, upstream, relayError)
      const next = prepared.afterRefusal?.(refusal) ?? null
      if (next !== null) prepared = next
      else if (streamed || !isStreamingRequired(refusal)) throw refusal
      else {
        streamed = true
        isLearned = false
        prepared = this.#prepare(true)
      }
    }
  }

  #read({ chunks, decoder }: StreamedBody) {
    if (decoder.state === 'open') chunks.pull(this)
    else {
      void lingering(chunks.next()).then((next) => {
        if (next === null || next.done) this.onComplete()
        else this.onNext(next.value)
      })
    }
  }

  /** Emits decoded events; a failure is reported at the next pull. */
  #deliver(decoder: Decoder, out: GenerationEvent[], failure: Failure) {
    if (failure !== null) {
      this.#ending = { error: hideUpstreamIn(failure.error, this.#context.upstream) }
    } else if (decoder.state === 'done') {
      this.#ending = null
    }
    this.emit(withRelay(out, decoder.takeRelay?.()))
  }

  #close(failure: Failure) {
    this.#phase = 'closed'
    this.#ending = null
    this.#releaseBody()
    this.emitEnd(failure)
  }

  #releaseBody() {
    const body = this.#body
    this.#body = null
    if (body === null) return
    const { chunks, decoder } = body
    // Reading the last bytes of a finished body in the background keeps the connection reusable.
    if (decoder.state === 'done') void lingering(chunks.next()).finally(() => chunks.return())
    else void chunks.return()
  }
}

function decodeBody(body: string, decoder: Decoder, out: GenerationEvent[]): Failure {
  try {
    if (!body.trimStart().startsWith('{')) throw notJson(body)
    decoder.pushBody(body, out)
    decoder.end(out)
    return null
  } catch (error) {
    return { error }
  }
}

function notJson(body: string): AppError {
  return new AppError(
    'upstream_invalid_answer',
    'The upstream returned neither an event stream nor JSON.',
    { cause: { body: body.slice(0, causeCharsMax) } },
  )
}

/** Whether the upstream refused a request because it did not stream. */
function isStreamingRequired(refusal: AppError): boolean {
  return refusal.kind === 'invalid_request' && /\bstream(ing|ed)?\b/i.test(refusalText(refusal))
}

export function acceptOf(streamed: boolean): string {
  return streamed ? 'text/event-stream' : 'application/json'
}

/** Servers name event streams in many ways, but never as JSON or HTML. */
function isEventStream(response: UpstreamHttpResponse): boolean {
  return !/\b(json|html)\b/i.test(response.header('content-type') ?? '')
}

/** The read; null when it fails or exceeds `lingerMs`. */
function lingering<T>(read: Promise<T>): Promise<T | null> {
  return orAfter(
    read.catch(() => null),
    lingerMs,
    null,
  )
}
