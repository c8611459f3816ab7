import type { CancelSignal } from '#lib/cancellation.ts'
import type { PullIterator } from '#lib/pull-iterator.ts'
import type { TraceContext } from '#lib/trace.ts'

/** Sends requests to upstreams: returns the response head, then its body as chunks that are pulled. */
export type Transport = {
  send(request: UpstreamHttpRequest): Promise<UpstreamHttpResponse>
}

/** A transport that keeps connections for the next requests. */
export type PooledTransport = Transport & {
  /** Closes the connections that no request uses, which frees their file descriptors. */
  closeIdle(): void
  /** Closes idle connections now, and the others when their request has ended. */
  close(): void
}

/** Headers that identify the request to the upstream; `headers` take precedence. */
export type RequestIdentity = {
  /** `x-request-id`; each attempt has its own. */
  readonly requestId: string
  /** `traceparent` and `tracestate`. */
  readonly trace: TraceContext | null
  /** Takes the time of a new connection. */
  readonly exchange: { connectMs: number | null } | undefined
}

export type UpstreamHttpRequest = {
  /** The name of the upstream, for metrics. */
  readonly upstream: string
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  readonly identity?: RequestIdentity | undefined
  /** Closes the connection within the same tick, also while `send` or a read is pending. */
  readonly signal: CancelSignal
}

export type UpstreamHttpResponse = {
  readonly status: number
  header(name: string): string | null
  /**
   * The body, one chunk per read; the upstream is paused while nothing is read. Throws an `AppError`
   * (`upstream_truncated`) when the connection ends before the body does. `return()` closes the
   * connection.
   */
  readonly chunks: PullIterator<Chunk>
  /** The whole body, when it arrived with the head. Then `chunks` has it too, and need not be read. */
  readonly whole: Chunk | null
}

/** A range of a read buffer. Creating a view for it would cost as much as processing it. */
export type Chunk = { readonly bytes: Buffer; readonly start: number; readonly end: number }

/** Wraps all bytes of an array, without copying. */
export function chunkOf({ buffer, byteOffset, byteLength }: Uint8Array): Chunk {
  return { bytes: Buffer.from(buffer, byteOffset, byteLength), start: 0, end: byteLength }
}

/** The chunk as an array, without copying. */
export function viewOf({ bytes, start, end }: Chunk): Uint8Array {
  return bytes.subarray(start, end)
}
