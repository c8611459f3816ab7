import { getEventListeners } from 'node:events'
import { createTransport, type TransportKind } from '#inference/transport/create-transport.ts'
import type { SocketTransportOptions } from '#inference/transport/socket-transport.ts'
import type { Chunk, UpstreamHttpRequest, UpstreamHttpResponse } from '#inference/transport.ts'

export const limits = {
  connectMs: () => 60_000,
  idleMs: 60_000,
  idleSocketsPerOriginMax: 8,
  headerBytesMax: 16_384,
  bufferBytesMax: 65_536,
}

export const openTransport = (kind: TransportKind, options: Partial<SocketTransportOptions> = {}) =>
  createTransport(kind, { ...limits, ...options, fetch })

/** A request with everything that a test does not care about. */
export function request(url: string, rest: Partial<UpstreamHttpRequest> = {}): UpstreamHttpRequest {
  return {
    upstream: 'a-server',
    url,
    method: 'POST',
    headers: {},
    body: '{}',
    signal: unaborted(),
    ...rest,
  }
}

const unaborted = () => new AbortController().signal

export const listenersOf = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

/** The body, one character a byte. */
export async function textOf(answer: UpstreamHttpResponse): Promise<string> {
  let text = ''
  for await (const chunk of answer.chunks) text += latin1(chunk)
  return text
}

/** What came of a body before it failed, and the error; null when it did not fail. */
export async function readUntilFailure(
  answer: UpstreamHttpResponse,
  onText: () => void = () => {},
): Promise<{ text: string; error: unknown }> {
  let text = ''
  try {
    for await (const chunk of answer.chunks) {
      text += latin1(chunk)
      onText()
    }
    return { text, error: null }
  } catch (error) {
    return { text, error }
  }
}

/** One character a byte. */
export function latin1(chunk: Chunk | undefined): string {
  return chunk?.bytes.toString('latin1', chunk.start, chunk.end) ?? ''
}

/** The error that a promise ends with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

/** Waits for something that other parties bring about; the test's own timeout is the limit. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(2)
}
