import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { type ReindexHarness, startReindexHarness } from './reindex-harness.ts'
import { type ReindexServer, startReindexServer } from './reindex-server.ts'
import { gateModel, restoreModel } from './scripted-models.ts'

/** The endpoints of reindexes. */

let harness: ReindexHarness
let server: ReindexServer
beforeAll(async () => {
  harness = await startReindexHarness()
  await harness.start()
  server = await startReindexServer(harness)
  await harness.createFilled('docs', 3)
})
afterEach(() => restoreModel(harness, 'small'))
afterAll(async () => {
  await server.stop()
  await harness.close()
})

type Body = Record<string, unknown>

async function bodyOf(answer: Response): Promise<Body> {
  return asRecord(await answer.json())
}

async function refusal(json: unknown): Promise<string> {
  const answer = await server.send('', { json })
  const { code, param } = asRecord((await bodyOf(answer))['error'])
  return `${answer.status} ${code} ${param}`
}

const noId = '01890000-0000-7000-8000-000000000000'
const actions = ['cancel', 'pause', 'resume', 'retry', 'accept', 'revert']

test('every endpoint needs can_edit_config', async () => {
  const gets = ['', `/${noId}`, `/${noId}/events`, `/${noId}/failures`]
  for (const path of gets) {
    expect((await server.send(path, { groups: ['users'] })).status).toBe(403)
  }
  for (const path of ['', ...actions.map((action) => `/${noId}/${action}`)]) {
    const answer = await server.send(path, { method: 'POST', json: {}, groups: ['users'] })
    expect(answer.status).toBe(403)
  }
})

test('every endpoint returns not_found for an unknown reindex', async () => {
  for (const id of [noId, 'no-id', 'x'.repeat(300)]) {
    for (const path of [`/${id}`, `/${id}/events`, `/${id}/failures`]) {
      expect((await server.send(path)).status).toBe(404)
    }
    for (const action of actions) {
      expect((await server.send(`/${id}/${action}`, { method: 'POST' })).status).toBe(404)
    }
  }
})

test('a dry run estimates the effort and changes nothing', async () => {
  const answer = await server.send('', { json: { embedding_model: 'small', dry_run: true } })
  expect(answer.status).toBe(200)
  expect(await bodyOf(answer)).toEqual({
    total: 3,
    est_tokens: expect.any(Number),
    est_seconds: expect.any(Number),
    dims: 64,
  })
  expect(await bodyOf(await server.send(''))).toMatchObject({ data: [] })
})

test('invalid reindexes are refused with a code', async () => {
  const model = { embedding_model: 'small' }
  const cases: [unknown, string][] = [
    [{}, '422 unprocessable embedding_model'],
    [{ ...model, modle: 'x' }, '422 unknown_field modle'],
    [{ embedding_model: 'absent' }, '422 model_not_found embedding_model'],
    [{ embedding_model: 'chatty' }, '422 model_mode_mismatch embedding_model'],
    [{ embedding_model: 'local-hash' }, '422 already_current embedding_model'],
    [{ ...model, collections: ['docs', 'none'] }, '422 collection_not_found collections[1]'],
    [{ ...model, collections: ['nul\0'] }, '422 collection_not_found collections[0]'],
    [{ ...model, collections: [] }, '422 unprocessable collections'],
    [{ ...model, collections: 'some' }, '422 unprocessable collections'],
    [
      { ...model, chunking: { max_tokens: 99, overlap_tokens: 0 } },
      '422 unprocessable chunking.max_tokens',
    ],
    [
      { ...model, chunking: { max_tokens: 100, overlap_tokens: 51 } },
      '422 unprocessable chunking.overlap_tokens',
    ],
  ]
  for (const [json, expected] of cases) expect(await refusal(json)).toBe(expected)
})

test('a reindex is started, streamed to its end, listed and reverted', async () => {
  const gate = gateModel(harness, 'small')
  const begun = await server.send('', { json: { embedding_model: 'small', collections: 'all' } })
  expect(begun.status).toBe(202)
  const { id, ...job } = await bodyOf(begun)
  expect(job).toMatchObject({
    object: 'embedding.reindex',
    source: { model: 'local-hash', dims: 384 },
    target: { model: 'small', dims: 64 },
    completed: 0,
    failed: 0,
    skipped: 0,
    total: 3,
    added: 0,
    last_error: null,
    finished_at: null,
  })
  expect(await refusal({ embedding_model: 'large' })).toBe('409 reindex_running null')
  const stream = await server.send(`/${id}/events`)
  expect(stream.headers.get('content-type')).toContain('text/event-stream')
  await harness.until(String(id), 'running')
  expect(await bodyOf(await server.send('?status=running'))).toMatchObject({ data: [{ id }] })
  expect(await bodyOf(await server.send('?status=paused'))).toMatchObject({ data: [] })
  expect((await server.send('?status=gone')).status).toBe(422)
  gate.open()
  const events = [...(await stream.text()).matchAll(/^event: progress\ndata: (.+)$/gm)].map(
    ([, data]) => asRecord(JSON.parse(data ?? '')),
  )
  expect(events[0]).toMatchObject({ id, completed: 0 })
  expect(events.at(-1)).toMatchObject({ id, status: 'completed', completed: 3, total: 3 })
  const reverted = await server.send(`/${id}/revert`, { method: 'POST' })
  expect([reverted.status, (await bodyOf(reverted))['status']]).toEqual([202, 'reverting'])
  await harness.until(String(id), 'reverted')
  expect((await server.send(`/${id}/revert`, { method: 'POST' })).status).toBe(200)
})

test('the ETag of a reindex changes with its content', async () => {
  const gate = gateModel(harness, 'small')
  const id = await harness.startReindex('small')
  await harness.until(id, 'running')
  await harness.act(id, 'pause')
  const shown = await server.send(`/${id}`)
  const etag = shown.headers.get('etag') ?? ''
  expect(await bodyOf(shown)).toMatchObject({ id, status: 'paused', rate_per_s: null })
  const again = await server.send(`/${id}`, { headers: { 'if-none-match': etag } })
  expect(again.status).toBe(304)
  const cancelled = await server.send(`/${id}/cancel`, { method: 'POST' })
  expect(cancelled.status).toBe(202)
  gate.open()
  await harness.until(id, 'cancelled')
  const since = await server.send(`/${id}`, { headers: { 'if-none-match': etag } })
  expect(since.status).toBe(200)
  expect((await server.send(`/${id}/cancel`, { method: 'POST' })).status).toBe(200)
  const { error } = await bodyOf(await server.send(`/${id}/pause`, { method: 'POST' }))
  expect(error).toMatchObject({ code: 'reindex_state' })
})

test('collections in several indexes need several reindexes', async () => {
  await harness.createFilled('more', 1)
  await harness.until(await harness.startReindex('large', ['more']), 'completed')
  expect(await refusal({ embedding_model: 'small' })).toBe('422 several_source_indexes collections')
  // The collections already use the target.
  const dry = { embedding_model: 'large', dry_run: true }
  expect(await bodyOf(await server.send('', { json: dry }))).toMatchObject({ total: 3 })
})
