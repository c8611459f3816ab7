import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { type ReindexServer, startReindexServer } from './reindex-server.ts'
import { type ReindexWorld, startReindexWorld } from './reindex-world.ts'
import { gateModel, mendModel } from './scripted-models.ts'

/** The routes of reindexes, as an administrator sends and reads them. */

let world: ReindexWorld
let server: ReindexServer
beforeAll(async () => {
  world = await startReindexWorld()
  await world.start()
  server = await startReindexServer(world)
  await world.filled('docs', 3)
})
afterEach(() => mendModel(world, 'small'))
afterAll(async () => {
  await server.stop()
  await world.close()
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

test('every route is for those who may change the configuration', async () => {
  const gets = ['', `/${noId}`, `/${noId}/events`, `/${noId}/failures`]
  for (const path of gets) {
    expect((await server.send(path, { groups: ['users'] })).status).toBe(403)
  }
  for (const path of ['', ...actions.map((action) => `/${noId}/${action}`)]) {
    const answer = await server.send(path, { method: 'POST', json: {}, groups: ['users'] })
    expect(answer.status).toBe(403)
  }
})

test('one that is not there is not found, on every route', async () => {
  for (const id of [noId, 'no-id', 'x'.repeat(300)]) {
    for (const path of [`/${id}`, `/${id}/events`, `/${id}/failures`]) {
      expect((await server.send(path)).status).toBe(404)
    }
    for (const action of actions) {
      expect((await server.send(`/${id}/${action}`, { method: 'POST' })).status).toBe(404)
    }
  }
})

test('a dry run says what a reindex would take, and changes nothing', async () => {
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

test('what cannot be begun is refused, and says why', async () => {
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

test('a reindex is begun, watched to its end, listed, and reverted', async () => {
  const gate = gateModel(world, 'small')
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
  const events = await server.send(`/${id}/events`)
  expect(events.headers.get('content-type')).toContain('text/event-stream')
  await world.until(String(id), 'running')
  expect(await bodyOf(await server.send('?status=running'))).toMatchObject({ data: [{ id }] })
  expect(await bodyOf(await server.send('?status=paused'))).toMatchObject({ data: [] })
  expect((await server.send('?status=gone')).status).toBe(422)
  gate.open()
  const told = [...(await events.text()).matchAll(/^event: progress\ndata: (.+)$/gm)].map(
    ([, data]) => asRecord(JSON.parse(data ?? '')),
  )
  expect(told[0]).toMatchObject({ id, completed: 0 })
  expect(told.at(-1)).toMatchObject({ id, status: 'completed', completed: 3, total: 3 })
  const reverted = await server.send(`/${id}/revert`, { method: 'POST' })
  expect([reverted.status, (await bodyOf(reverted))['status']]).toEqual([202, 'reverting'])
  await world.until(String(id), 'reverted')
  expect((await server.send(`/${id}/revert`, { method: 'POST' })).status).toBe(200)
})

test('a reindex is told by a tag until it changes', async () => {
  const gate = gateModel(world, 'small')
  const id = await world.begin('small')
  await world.until(id, 'running')
  await world.reindexes.act(id, 'pause')
  const shown = await server.send(`/${id}`)
  const etag = shown.headers.get('etag') ?? ''
  expect(await bodyOf(shown)).toMatchObject({ id, status: 'paused', rate_per_s: null })
  const again = await server.send(`/${id}`, { headers: { 'if-none-match': etag } })
  expect(again.status).toBe(304)
  const cancelled = await server.send(`/${id}/cancel`, { method: 'POST' })
  expect(cancelled.status).toBe(202)
  gate.open()
  await world.until(id, 'cancelled')
  const since = await server.send(`/${id}`, { headers: { 'if-none-match': etag } })
  expect(since.status).toBe(200)
  expect((await server.send(`/${id}/cancel`, { method: 'POST' })).status).toBe(200)
  const { error } = await bodyOf(await server.send(`/${id}/pause`, { method: 'POST' }))
  expect(error).toMatchObject({ code: 'reindex_state' })
})

test('collections in several indexes are changed by several reindexes', async () => {
  await world.filled('more', 1)
  await world.until(await world.begin('large', ['more']), 'completed')
  expect(await refusal({ embedding_model: 'small' })).toBe('422 several_source_indexes collections')
  // What is there already has nothing to change.
  const dry = { embedding_model: 'large', dry_run: true }
  expect(await bodyOf(await server.send('', { json: dry }))).toMatchObject({ total: 3 })
})
