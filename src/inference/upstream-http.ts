import { cachedByKey, cachedByText } from '#lib/cached-by-key.ts'
import type { AppError, RelayedError } from '#lib/errors.ts'
import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { consume } from '#lib/pull-iterator.ts'
import type { UpstreamHttpResponse } from './transport.ts'
import type { AdapterContext, Upstream, UpstreamContext } from './upstream.ts'
import { errorFromStatus, hideUpstream } from './upstream-error.ts'
import { Utf8Reader } from './utf8-reader.ts'

/** What adapters share about HTTP: headers, JSON calls, error statuses. */

const errorBodyBytesMax = 65_536
/** Some token counters list every token of the prompt. */
const counterBodyBytesMax = 16_777_216
/** About two thousand long vectors. */
const jsonBodyBytesMax = 268_435_456

/** An error response as a client of the same protocol may receive it; null: rendered by the surface. */
export type RelayError = (response: { status: number; body: string }) => RelayedError | null

type Headers = Readonly<Record<string, string>>

/** Types that are accepted of an upstream, and paths of its API. */
const perUpstreamMax = 16

const headersOf = cachedByKey((upstream: Upstream) =>
  cachedByText(
    perUpstreamMax,
    (accept): Headers => ({
      ...(upstream.key === undefined ? {} : { authorization: `Bearer ${upstream.key}` }),
      ...upstream.headers,
      accept,
      'content-type': 'application/json',
    }),
  ),
)

/**
 * The headers of a request to an upstream. None of them come from the client's request, so each set is
 * built once; the transport keeps it in its rendered form.
 */
export function requestHeaders(upstream: Upstream, accept: string): Headers {
  return headersOf(upstream)(accept)
}

const urlsOf = cachedByKey(({ baseUrl }: Upstream) =>
  cachedByText(perUpstreamMax, (path) => baseUrl + path),
)

/** The same string for every request, so that looking it up needs no hash of a new one. */
export function urlOf(upstream: Upstream, path: string): string {
  return urlsOf(upstream)(path)
}

export function isSuccess({ status }: UpstreamHttpResponse): boolean {
  return status >= 200 && status <= 299
}

/** Throws the error that a status other than 2xx stands for, without secrets of the gateway. */
export async function requireSuccess(
  response: UpstreamHttpResponse,
  upstream: Upstream,
): Promise<void> {
  if (!isSuccess(response)) throw await readRefusal(response, upstream)
}

/** The error that the status and the body of a response stand for. */
export async function readRefusal(
  response: UpstreamHttpResponse,
  upstream: Upstream,
  relayError?: RelayError,
): Promise<AppError> {
  const { status } = response
  const body = hideUpstream(await readText(response, errorBodyBytesMax), upstream)
  const relay = relayError?.({ status, body }) ?? undefined
  return errorFromStatus(status, body, { retryAfter: response.header('retry-after'), relay })
}

/**
 * The body as text; a promise unless it arrived with the head. Beyond `bytesMax` it is truncated and the
 * connection closed.
 */
export function readText(
  { chunks, whole }: UpstreamHttpResponse,
  bytesMax: number,
): string | Promise<string> {
  const reader = new Utf8Reader()
  if (whole !== null && whole.end - whole.start < bytesMax) {
    return reader.read(whole) + reader.readEnd()
  }
  let text = ''
  let bytes = 0
  return consume(chunks, {
    take(chunk) {
      text += reader.read(chunk)
      bytes += chunk.end - chunk.start
      return bytes < bytesMax
    },
    result() {
      if (bytes >= bytesMax) void chunks.return()
      return text + reader.readEnd()
    },
  })
}

/** POSTs JSON to a path of the upstream. Returns the parsed body; undefined when it is not JSON. */
export async function postJson(
  context: AdapterContext,
  path: string,
  body: unknown,
): Promise<unknown> {
  const { upstream } = context
  const response = await sendJson(context, { url: upstream.baseUrl + path, body })
  await requireSuccess(response, upstream)
  return parseJson(await readText(response, jsonBodyBytesMax))
}

/** The upstream has no such endpoint. */
const absentStatuses = [404, 405, 501]

type CounterRequest = {
  readonly url: string
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * POSTs to a token counter of an upstream. Returns null when the upstream has none, and an empty
 * object when the response is not a JSON object.
 */
export async function postToCounter(
  context: AdapterContext,
  request: CounterRequest,
): Promise<JsonObject | null> {
  const response = await sendJson(context, request)
  if (absentStatuses.includes(response.status)) {
    await readText(response, counterBodyBytesMax)
    return null
  }
  await requireSuccess(response, context.upstream)
  const parsed = parseJson(await readText(response, counterBodyBytesMax))
  return isRecord(parsed) ? parsed : {}
}

/** A token count in a response; NaN when it is not a number. */
export function readCount(value: unknown): number {
  return typeof value === 'number' ? value : Number.NaN
}

async function sendJson(
  { identity, upstream, transport, signal }: UpstreamContext,
  { url, body, headers }: CounterRequest,
): Promise<UpstreamHttpResponse> {
  const response = await transport.send({
    upstream: upstream.name,
    url,
    method: 'POST',
    headers: headers ?? requestHeaders(upstream, 'application/json'),
    body: JSON.stringify(body),
    identity,
    signal,
  })
  identity?.trace?.span?.set({ 'http.response.status_code': response.status })
  return response
}
