import type { PullIterator } from '#lib/pull-iterator.ts'
import type { Chunk } from './chunk.ts'

/**
 * How bytes go to an upstream and come back. Narrow on purpose, so that the way of doing it can be
 * exchanged: a request in, the head of the answer, then its body as chunks that are pulled.
 */
export type Transport = {
  send(request: UpstreamHttpRequest): Promise<UpstreamHttpResponse>
}

export type UpstreamHttpRequest = {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Closes the connection within the same tick, also while `send` or a read is pending. */
  readonly signal: AbortSignal
}

export type UpstreamHttpResponse = {
  readonly status: number
  header(name: string): string | null
  /**
   * The body, one chunk a read; not reading holds the upstream back. Throws an `AppError`
   * (`upstream_truncated`) when the connection ends before the body does. Stopping early closes
   * the connection.
   */
  readonly chunks: PullIterator<Chunk>
}
