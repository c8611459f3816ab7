import { isRecord } from '#lib/json.ts'
import type { Gateway } from './gateway.ts'
import type { LoadJob, LoadRequest } from './load-job.ts'
import type { Protocol } from './mock-frames.ts'
import { modelName, type Plan, tokenText, writePlan } from './plan.ts'
import { outputTextOf } from './stream-events.ts'

const upstreamPaths: Readonly<Record<Protocol, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
}

const modelsPath = '/v1/models'
/** Length of every prompt; padded. */
const promptBytes = 1_024
/** Required by the protocol, ignored by the mock upstream. */
const maxTokens = 100_000

/** Path of the surface; Sluice has none for chat completions. */
export function gatewayPath(protocol: Exclude<Protocol, 'chat'>): string {
  return protocol === 'messages' ? '/compat/v1/messages' : upstreamPaths[protocol]
}

/** A job of streamed, unstored responses of a gateway, with measurement. */
export function streamedResponses({ port, bearer, pid }: Gateway) {
  const request = { port, bearer, protocol: 'responses', stream: true, store: false } as const
  return { ...request, measurePid: pid } satisfies Partial<LoadJob>
}

/** The complete HTTP request with the plan as prompt. */
export function requestBytes(job: LoadRequest, plan: Plan): Buffer {
  const prompt = writePlan(plan, promptBytes)
  const body = job.listsModels
    ? ''
    : JSON.stringify({ model: modelName, ...contentOf(job, prompt), stream: job.stream })
  const path = job.listsModels ? modelsPath : (job.path ?? upstreamPaths[job.protocol])
  const headers = {
    Host: `127.0.0.1:${job.port}`,
    ...(job.bearer === null ? {} : { Authorization: `Bearer ${job.bearer}` }),
    'Content-Type': 'application/json',
    'Content-Length': body.length,
    ...job.headers,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const method = job.listsModels ? 'GET' : 'POST'
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

function contentOf({ protocol, stream, store }: LoadRequest, prompt: string): object {
  const messages = [{ role: 'user', content: prompt }]
  switch (protocol) {
    case 'chat':
      return { messages, ...(stream ? { stream_options: { include_usage: true } } : {}) }
    case 'responses':
      return { input: prompt, store }
    case 'messages':
      return { messages, max_tokens: maxTokens }
  }
}

/** Text of a response that was not streamed. */
export function responseText(protocol: Protocol, body: unknown): unknown {
  switch (protocol) {
    case 'responses':
      return outputTextOf(body)
    case 'messages':
      return recordAt(body, 'content')?.['text']
    case 'chat': {
      const message = recordAt(body, 'choices')?.['message']
      return isRecord(message) ? message['content'] : undefined
    }
  }
}

/** First object of a list property. */
function recordAt(value: unknown, key: string): Record<string, unknown> | undefined {
  const list = isRecord(value) ? value[key] : undefined
  const first: unknown = Array.isArray(list) ? list[0] : undefined
  return isRecord(first) ? first : undefined
}

/** Text of the plan; the start time in its first token is taken from `text`. */
export function expectedText(plan: Plan, text: unknown): string {
  const startedAtMs = Number(/^t0@([\d.]+)/.exec(String(text))?.[1])
  let expected = ''
  for (let index = 0; index < plan.tokens; index++) expected += tokenText(plan, index, startedAtMs)
  return expected
}
