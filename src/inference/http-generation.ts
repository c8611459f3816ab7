import { AppError, type RelayedError } from '#lib/errors.ts'
import { type Failure, PullIterator, type Subscriber } from '#lib/pull-iterator.ts'
import { orAfter } from '#lib/time-limit.ts'
import { type Chunk, viewOf } from './chunk.ts'
import {
  createEventStreamParser,
  type EventStreamParser,
  type ServerSentEvent,
} from './event-stream.ts'
import type { EventBatch, GenerationEvent, Relay } from './events.ts'
import { withRelay } from './relay.ts'
import type { UpstreamHttpResponse } from './transport.ts'
import type { AdapterContext, Upstream } from './upstream.ts'
import { errorFromStatus, hideUpstream, hideUpstreamIn } from './upstream-error.ts'

/**
 * Turns the messages of one upstream stream into events; a pure closure without network or time.
 * Every method appends to `out`, and throws an `AppError` when the upstream reports a failure or
 * breaks off; what it appended before still counts.
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
   * follow. `done`: `finish` was emitted, whatever follows is ignored.
   */
  readonly state: 'open' | 'finishing' | 'done'
  /** What came since it was asked last, as frames for a caller of the same protocol. */
  takeRelay?(): Relay | undefined
}

/** What goes out in a request, and who reads its answer. */
export type PreparedRequest = {
  readonly body: string
  readonly decoder: Decoder
  /** In place of those of `requestHeaders`. */
  readonly headers?: Readonly<Record<string, string>>
  /** What an error answer is to a caller of the same protocol; null: to be told in our words. */
  readonly relayError?: (answer: { status: number; body: string }) => RelayedError | null
}

/** The longest error body that is read. */
const errorBodyBytesMax = 65_536
/** How much of an answer that makes no sense is kept for the log. */
const errorCharsMax = 500
/** The longest answer that is read whole, where an upstream does not stream. */
const wholeBodyBytesMax = 67_108_864
/** How long trailing usage, or the end of the body, is waited for once the model is done. */
const lingerMs = 2_000

/**
 * POSTs a generation to an upstream and gives what its answer means, one batch a read. An empty
 * batch says that bytes came but no whole event. Follows the contract of `Adapter.generate`: what
 * cannot be encoded is refused by `prepare` at the first read, like every other failure.
 */
export function postGeneration(
  context: AdapterContext,
  path: string,
  prepare: () => PreparedRequest,
): PullIterator<EventBatch> {
  return new HttpGeneration(context, path, prepare)
}

/** An answer that is streamed. */
type StreamedBody = {
  readonly chunks: PullIterator<Chunk>
  readonly parser: EventStreamParser
  readonly decoder: Decoder
}

class HttpGeneration extends PullIterator<EventBatch> implements Subscriber<Chunk> {
  readonly #context: AdapterContext
  readonly #path: string
  readonly #prepare: () => PreparedRequest
  #phase: 'new' | 'open' | 'over' = 'new'
  #answer: StreamedBody | null = null
  /** Why nothing follows the batch that was given last; undefined while more may follow. */
  #ending: Failure | undefined

  constructor(context: AdapterContext, path: string, prepare: () => PreparedRequest) {
    super()
    this.#context = context
    this.#path = path
    this.#prepare = prepare
  }

  protected onPull() {
    if (this.#phase === 'new') void this.#begin()
    else if (this.#ending !== undefined || this.#answer === null) this.#finish(this.#ending ?? null)
    else this.#read(this.#answer)
  }

  onNext(chunk: Chunk) {
    const answer = this.#answer
    if (answer === null) return
    const out: GenerationEvent[] = []
    this.#tell(answer.decoder, out, decodeChunk(answer, chunk, out))
  }

  onError(error: unknown) {
    if (this.#answer !== null) this.#finish({ error })
  }

  onComplete() {
    const answer = this.#answer
    if (answer === null) return
    const out: GenerationEvent[] = []
    this.#ending = null
    this.#tell(answer.decoder, out, decodeEnd(answer, out))
  }

  return(): Promise<IteratorResult<EventBatch, undefined>> {
    this.#finish(null)
    return Promise.resolve({ done: true, value: undefined })
  }

  async #begin(): Promise<void> {
    this.#phase = 'open'
    const out: GenerationEvent[] = []
    let decoder: Decoder | null = null
    let failure: Failure = null
    try {
      decoder = await this.#open(out)
    } catch (error) {
      failure = { error }
    }
    if (failure !== null || this.#isOver()) this.#finish(failure)
    else if (this.#answer !== null) this.#read(this.#answer)
    else if (decoder !== null) this.#tell(decoder, out, this.#ending ?? null)
  }

  /** Sends the request. An answer that is not streamed is read whole, and what it means appended. */
  async #open(out: GenerationEvent[]): Promise<Decoder> {
    const { transport, upstream, signal, limits } = this.#context
    const { body, decoder, headers, relayError } = this.#prepare()
    const answer = await transport.send({
      url: upstream.baseUrl + this.#path,
      method: 'POST',
      headers: headers ?? requestHeaders(upstream, 'text/event-stream'),
      body,
      signal,
    })
    await requireSuccess(answer, upstream, relayError)
    if (isEventStream(answer)) {
      const parser = createEventStreamParser(limits)
      this.#answer = { chunks: answer.chunks, parser, decoder }
    } else {
      this.#ending = decodeWhole(await readText(answer, wholeBodyBytesMax), decoder, out)
    }
    return decoder
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

  /** Gives what was decoded; a failure is told to whoever asks for more. */
  #tell(decoder: Decoder, out: GenerationEvent[], failure: Failure) {
    if (failure !== null) {
      this.#ending = { error: hideUpstreamIn(failure.error, this.#context.upstream) }
    } else if (decoder.state === 'done') {
      this.#ending = null
    }
    this.emit(withRelay(out, decoder.takeRelay?.()))
  }

  #finish(failure: Failure) {
    this.#phase = 'over'
    this.#ending = null
    this.#leaveBody()
    this.emitEnd(failure)
  }

  #leaveBody() {
    const answer = this.#answer
    this.#answer = null
    if (answer === null) return
    const { chunks, decoder } = answer
    // Nobody waits for the last bytes of a finished body; reading them keeps the connection.
    if (decoder.state === 'done') void lingering(chunks.next()).finally(() => chunks.return())
    else void chunks.return()
  }

  #isOver(): boolean {
    return this.#phase === 'over'
  }
}

/** The headers of a request to an upstream. Nothing of the client's request is among them. */
export function requestHeaders(upstream: Upstream, accept: string): Record<string, string> {
  return {
    ...(upstream.key === undefined ? {} : { authorization: `Bearer ${upstream.key}` }),
    ...upstream.headers,
    accept,
    'content-type': 'application/json',
  }
}

/** Throws what an answer other than 2xx means, without what belongs to the gateway alone. */
export async function requireSuccess(
  answer: UpstreamHttpResponse,
  upstream: Upstream,
  relayError?: PreparedRequest['relayError'],
): Promise<void> {
  const { status } = answer
  if (status >= 200 && status <= 299) return
  const body = hideUpstream(await readText(answer, errorBodyBytesMax), upstream)
  const relay = relayError?.({ status, body }) ?? undefined
  throw errorFromStatus(status, body, { retryAfter: answer.header('retry-after'), relay })
}

/** The body as text; what exceeds `bytesMax` is cut off, and the connection with it. */
export async function readText(answer: UpstreamHttpResponse, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of answer.chunks) {
    text += decoder.decode(viewOf(chunk), { stream: true })
    bytes += chunk.end - chunk.start
    if (bytes >= bytesMax) break
  }
  return text + decoder.decode()
}

/**
 * Appends what a chunk means. What was decoded before a failure still counts, so a failure is returned
 * and not thrown.
 */
function decodeChunk(
  { parser, decoder }: StreamedBody,
  chunk: Chunk,
  out: GenerationEvent[],
): Failure {
  try {
    for (const message of parser.push(chunk)) decoder.push(message, out)
    return null
  } catch (error) {
    return { error }
  }
}

/** Appends what the end of the body means. */
function decodeEnd({ parser, decoder }: StreamedBody, out: GenerationEvent[]): Failure {
  try {
    const last = parser.end()
    if (last !== null) decoder.push(last, out)
    decoder.end(out)
    return null
  } catch (error) {
    return { error }
  }
}

function decodeWhole(body: string, decoder: Decoder, out: GenerationEvent[]): Failure {
  if (!body.trimStart().startsWith('{')) {
    throw new AppError(
      'upstream_invalid_answer',
      'The upstream answered with something other than an event stream or JSON.',
      { cause: { body: body.slice(0, errorCharsMax) } },
    )
  }
  try {
    decoder.pushBody(body, out)
    decoder.end(out)
    return null
  } catch (error) {
    return { error }
  }
}

/** Servers name event streams in many ways, but never as JSON or as a page. */
function isEventStream(answer: UpstreamHttpResponse): boolean {
  return !/\b(json|html)\b/i.test(answer.header('content-type') ?? '')
}

/** The read, or null when it fails or takes too long to matter. */
function lingering<T>(read: Promise<T>): Promise<T | null> {
  return orAfter(
    read.catch(() => null),
    lingerMs,
    null,
  )
}
