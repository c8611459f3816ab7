import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** A heartbeat is not output: an upstream that fails after it is retried like before. */

const stream = (body: string) =>
  new Response(body, { headers: { 'content-type': 'text/event-stream' } })
const whole = chatStream([chunk({ content: 'one two' }), chunk({}, 'stop')])
/** Ends without a finish reason. */
const cut = (body: string) => stream(body)

const failures = {
  'with status 500': () => new Response('broken', { status: 500 }),
  'with status 429': () => new Response('{}', { status: 429, headers: { 'retry-after': '0' } }),
  'with an empty stream': () => cut(''),
  'after a role without content': () =>
    cut(`data: ${JSON.stringify(chunk({ role: 'assistant', content: '' }))}\n\n`),
  'with an error event': () => stream(`data: {"error": {"message": "busy", "code": 503}}\n\n`),
} as const

const surfaces = {
  'stored response': {
    path: '/v1/responses',
    body: { input: 'x' },
    beat: /response\.in_progress/g,
  },
  'unstored response': {
    path: '/v1/responses',
    body: { input: 'x', store: false },
    beat: /response\.in_progress/g,
  },
  message: {
    path: '/compat/v1/messages',
    body: { max_tokens: 9, messages: [{ role: 'user', content: 'x' }] },
    beat: /event: ping/g,
  },
} as const

let gateway: Gateway
let fail: keyof typeof failures
let released = Promise.withResolvers<void>()
let asked: string[] = []

/** The first request of a test waits until the client has seen heartbeats, and fails. */
const upstream = (name: string) =>
  Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch() {
      asked.push(name)
      if (asked.length > 1) return stream(whole)
      await released.promise
      return failures[fail]()
    },
  })
const first = upstream('first')
const second = upstream('second')

beforeAll(async () => {
  gateway = await startGateway({
    upstream: [
      { name: 'first', url: `${first.url.href}v1`, models: ['alone', 'both'] },
      { name: 'second', url: `${second.url.href}v1`, models: ['both'] },
    ],
    stream: { heartbeatMs: 20 },
    // Neither failures nor waiting change the choice of later tests.
    health: { failuresMax: 1_000, probe: false },
    retry: { backoffMs: 1 },
  })
})
afterAll(async () => {
  await gateway.stop()
  await Promise.all([first.stop(true), second.stop(true)])
})

const models = { alone: ['first', 'first'], both: ['first', 'second'] } as const
const cases = Object.keys(surfaces).flatMap((surface) =>
  Object.keys(failures).flatMap((failure) =>
    Object.keys(models).map((model) => [surface, failure, model] as const),
  ),
) as [keyof typeof surfaces, keyof typeof failures, keyof typeof models][]

test.each(cases)(
  'a %s whose upstream fails %s after heartbeats is retried (%s)',
  async (...given) => {
    const [surface, failure, model] = given
    const { path, body, beat } = surfaces[surface]
    fail = failure
    released = Promise.withResolvers()
    asked = []
    const answer = await gateway.request(path, {
      method: 'POST',
      body: JSON.stringify({ ...body, model, stream: true }),
    })
    expect(answer.status).toBe(200)
    let text = ''
    const reading = (async () => {
      for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) text += part
    })()
    await eventually('heartbeats arrive', () => [...text.matchAll(beat)].length >= 3)
    released.resolve()
    await reading
    expect(text).toContain('one two')
    expect(text).not.toContain('event: error')
    expect(asked.toSorted()).toEqual([...models[model]])
  },
)
