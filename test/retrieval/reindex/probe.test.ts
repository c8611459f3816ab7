import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { asRecord, parseJson } from '#lib/json.ts'
import { systemPrincipal } from '#lib/request-context.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import {
  type ReplayAnswer,
  type ReplayRequest,
  type ReplayUpstream,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'
import { type ReindexHarness, startReindexHarness } from './reindex-harness.ts'
import { type ReindexServer, startReindexServer } from './reindex-server.ts'

/** The probe of a model before a reindex. */

let upstream: ReplayUpstream
let gateway: Gateway
let harness: ReindexHarness
let server: ReindexServer
beforeAll(async () => {
  upstream = await startReplayUpstream(vectorsOf(8))
  gateway = await startGateway({
    upstream: [{ name: 'tei', url: upstream.baseUrl, models: ['chatty'] }],
    model: [{ name: 'remote', mode: 'embed', upstreams: ['tei'] }],
    retry: { retriesMax: 0 },
  })
  harness = await startReindexHarness()
  harness.embedders.set('remote', await gateway.deps.embedders.find('remote', systemPrincipal))
  server = await startReindexServer(harness)
  await harness.collection('docs')
})
afterEach(() => upstream.answer(vectorsOf(8)))
afterAll(async () => {
  await server.stop()
  await harness.close()
  await gateway.stop()
  await upstream.stop()
})

function json(body: unknown, status = 200): ReplayAnswer {
  return {
    status,
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  }
}

function textsOf({ body }: ReplayRequest): unknown[] {
  const { input } = asRecord(parseJson(body))
  return Array.isArray(input) ? input : [input]
}

/** Vectors of these dimensions, for one text and for a batch. */
function vectorsOf(
  dims: number,
  change: (texts: number) => { dims?: number; count?: number } = () => ({}),
) {
  return (request: ReplayRequest): ReplayAnswer => {
    const texts = textsOf(request).length
    const { dims: length = dims, count = texts } = change(texts)
    const embedding = Array.from({ length }, (_, at) => at + 1)
    return json({ data: Array.from({ length: count }, (_, index) => ({ index, embedding })) })
  }
}

/** The error of a start; checks that no reindex was created. */
async function start(): Promise<{ status: number; code: unknown; message: string }> {
  const answer = await server.send('', { json: { embedding_model: 'remote' } })
  const { error } = asRecord(await answer.json())
  const list = asRecord(await (await server.send('')).json())
  expect(list['data']).toEqual([])
  const { code, message } = asRecord(error)
  return { status: answer.status, code, message: String(message) }
}

const isBatch = (texts: number) => texts > 1

test('the probe embeds one text and a full batch', async () => {
  const answer = await server.send('', { json: { embedding_model: 'remote', dry_run: true } })
  expect(await answer.json()).toMatchObject({ dims: 8, total: 0 })
  expect(upstream.requests.map((request) => textsOf(request).length)).toEqual([1, 64])
})

test('a model that fails the probe is refused', async () => {
  const failing: Record<string, (request: ReplayRequest) => ReplayAnswer> = {
    'other lengths in a batch': vectorsOf(8, (texts) => (isBatch(texts) ? { dims: 16 } : {})),
    'fewer vectors for a batch': vectorsOf(8, (texts) => (isBatch(texts) ? { count: 63 } : {})),
    'nothing for a batch': (request) =>
      isBatch(textsOf(request).length) ? json({ data: null }) : vectorsOf(8)(request),
    'no numbers': () => json('{"data":[{"index":0,"embedding":[1,NaN]}]}'),
    'an infinite number': () => json('{"data":[{"index":0,"embedding":[1e999]}]}'),
    'nothing but zeros': () => json({ data: [{ index: 0, embedding: [0, 0] }] }),
    'no time': () => json({ error: { message: 'Too many requests.' } }, 429),
    'a failure': () => json({ error: { message: 'It is broken.' } }, 500),
  }
  for (const [what, answer] of Object.entries(failing)) {
    upstream.answer(answer)
    const { status, code, message } = await start()
    expect([what, status, code]).toEqual([what, 502, 'embedding_probe_failed'])
    expect(message).toContain('The probe of "remote" failed')
  }
})

test('too many dimensions are refused before an index is created', async () => {
  upstream.answer(vectorsOf(16_001))
  expect(await start()).toMatchObject({ status: 422, code: 'too_many_dimensions' })
})
