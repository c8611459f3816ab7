import { isRecord } from '#lib/json.ts'
import type { LoadJob } from './load-job.ts'
import type { Protocol } from './mock-frames.ts'
import { modelName, type Plan, tokenText, writePlan } from './plan.ts'
import { outputTextOf } from './stream-check.ts'

/** The whole HTTP request; the plan is its prompt. */
export function requestBytes(job: LoadJob, plan: Plan): Buffer {
  const prompt = writePlan(plan, job.promptBytes)
  const content =
    job.protocol === 'chat'
      ? { messages: [{ role: 'user', content: prompt }] }
      : { input: prompt, store: job.store }
  const usage =
    job.stream && job.protocol === 'chat' ? { stream_options: { include_usage: true } } : {}
  const body = JSON.stringify({ model: modelName, ...content, stream: job.stream, ...usage })
  const path = job.protocol === 'chat' ? '/v1/chat/completions' : '/v1/responses'
  const bearer = job.bearer === null ? '' : `Authorization: Bearer ${job.bearer}\r\n`
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${job.port}\r\n${bearer}` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
}

/** The text of an answer that was not streamed. */
export function wholeAnswer(protocol: Protocol, answer: unknown): unknown {
  if (protocol === 'responses') return outputTextOf(answer)
  const choices = isRecord(answer) ? answer['choices'] : undefined
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
  const message = isRecord(choice) ? choice['message'] : undefined
  return isRecord(message) ? message['content'] : undefined
}

/** The plan's text; the start that its first token names is taken from `text`. */
export function expectedAnswer(plan: Plan, text: unknown): string {
  const startedAtMs = Number(/^t0@([\d.]+)/.exec(String(text))?.[1])
  let expected = ''
  for (let index = 0; index < plan.tokens; index++) expected += tokenText(plan, index, startedAtMs)
  return expected
}
