import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import type { Outcome, SoakJob } from './soak-job.ts'

/** State of a soak client: credentials and gateway. */
export type SoakClient = {
  readonly job: SoakJob
  readonly number: number
  readonly bearer: string
  random(): number
  /** Sends a request. Every response is validated while it is read; throws on violations. */
  ask(path: string, how?: RequestOptions): Promise<Response>
  /** The same for JSON; throws if the status differs. */
  askJson(path: string, how?: RequestOptions & { status?: number }): Promise<JsonObject>
}

export type RequestOptions = {
  readonly method?: string
  readonly json?: unknown
  readonly body?: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
  readonly bearer?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** A client scenario and its relative frequency. */
export type Scene = {
  readonly kind: string
  readonly weight: number
  /** Throws on an incorrect response. */
  play(client: SoakClient): Promise<Outcome>
}

export function createClient(job: SoakJob, number: number, random: () => number): SoakClient {
  const bearer = job.bearers[number % job.bearers.length] ?? ''
  const ask = (path: string, how: RequestOptions = {}) => {
    const { method, json, body, headers, signal } = how
    const sent = json === undefined ? body : JSON.stringify(json)
    return checkedFetch(`http://127.0.0.1:${job.port}${path}`, {
      method: method ?? (sent === undefined ? 'GET' : 'POST'),
      headers: {
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...(headers?.['x-api-key'] === undefined
          ? { authorization: `Bearer ${how.bearer ?? bearer}` }
          : {}),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent }),
      ...(signal === undefined ? {} : { signal }),
      // An idle connection may close while a request is sent, which would look like a fault.
      keepalive: false,
    })
  }
  return {
    job,
    number,
    bearer,
    random,
    ask,
    async askJson(path, { status, ...how } = {}) {
      const httpResponse = await ask(path, how)
      const text = await httpResponse.text()
      const isRight = status === undefined ? httpResponse.ok : httpResponse.status === status
      if (isRight) return asRecord(parseJson(text))
      throw new Error(
        `${how.method ?? ''} ${path} returned ${httpResponse.status}: ${text.slice(0, 200)}`,
      )
    },
  }
}

/** Aborts after this time. */
export function leaveAfter(ms: number) {
  const leave = new AbortController()
  const timer = setTimeout(() => leave.abort(), ms)
  return {
    signal: leave.signal,
    /** Whether an error is only the abort; other errors take precedence. */
    hasLeft: (error: unknown) =>
      leave.signal.aborted && error instanceof DOMException && error.name === 'AbortError',
    close: () => clearTimeout(timer),
  }
}

/** Polls until true; throws at the deadline. */
export async function until(
  what: string,
  withinMs: number,
  holds: () => Promise<boolean>,
): Promise<void> {
  const endMs = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not within ${withinMs} ms: ${what}`)
    await Bun.sleep(100)
  }
}
