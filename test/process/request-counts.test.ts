import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Counts, countedKinds } from '#test/support/request-counts/count-calls.ts'
import { manyTokens, type RequestCounts } from '#test/support/request-counts/requests.ts'

/**
 * A guard of the hot path. What a common request starts is counted, not timed: a change that adds a
 * timer, an abort controller or a parse to each request fails here. Lower a limit when a change
 * saves one; raise it only for something that every request needs.
 */
const limits: Readonly<Record<string, Counts>> = {
  response: { timers: 2, controllers: 0, parses: 2, stringifies: 2 },
  'stored response': { timers: 4, controllers: 0, parses: 2, stringifies: 14 },
  // One parse and one stringify per event.
  stream: { timers: 6, controllers: 1, parses: manyTokens + 4, stringifies: manyTokens + 12 },
  'stored stream': {
    timers: 6,
    controllers: 2,
    parses: manyTokens + 4,
    stringifies: manyTokens + 24,
  },
  message: { timers: 2, controllers: 0, parses: 2, stringifies: 2 },
  'message stream': {
    timers: 6,
    controllers: 1,
    parses: manyTokens + 4,
    stringifies: manyTokens + 7,
  },
  models: { timers: 0, controllers: 0, parses: 0, stringifies: 2 },
}

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const usage = { prompt_tokens: 3, completion_tokens: manyTokens, total_tokens: manyTokens + 3 }
const content = 'word '.repeat(manyTokens)

const stream =
  chunk({ content: 'word ' }).repeat(manyTokens) +
  chunk({}, 'stop') +
  `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`

let upstream: Bun.Server<undefined>
let results: RequestCounts[]

beforeAll(async () => {
  upstream = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (new URL(request.url).pathname === '/v1/models') {
        return Response.json({ object: 'list', data: [{ id: 'm', object: 'model' }] })
      }
      const isStreamed = (await request.text()).includes('"stream":true')
      if (isStreamed)
        return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
      const message = { role: 'assistant', content }
      return Response.json({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage })
    },
  })
  const program = join(import.meta.dir, '../support/request-counts/program.ts')
  const child = Bun.spawn([process.execPath, program, String(upstream.port)], { stderr: 'inherit' })
  results = JSON.parse(await new Response(child.stdout).text())
})
afterAll(() => upstream.stop(true))

test.each(Object.entries(limits))('a %s starts no more than before', (name, limit) => {
  const counts = results.find(({ request }) => request === name)
  const excess = countedKinds.map((kind) => [kind, (counts?.[kind] ?? Infinity) - limit[kind]])
  expect(excess.filter(([, more]) => Number(more) > 0)).toEqual([])
})
