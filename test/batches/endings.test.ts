import { expect, test } from 'bun:test'
import OpenAI from 'openai'
import { createBatchStore } from '#batches/store.ts'
import { createSweepStore } from '#files/trash/store.ts'
import { asRecord } from '#lib/json.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  batchWorld,
  clientOf,
  createBatch,
  ended,
  linesOf,
  responseLine,
  uploadLines,
} from './world.ts'

/** Batches that end early. */

const world = batchWorld()

test('a cancelled batch keeps its answers, and takes no later one', async () => {
  const created = await createBatch(world.client, [
    responseLine('done'),
    responseLine('held-1'),
    responseLine('held-2'),
  ])
  await eventually('one line is recorded', async () => {
    return (await world.client.batches.retrieve(created.id)).request_counts?.completed === 1
  })
  await eventually('the others are held', () => world.upstream.held().length === 2)
  const cancelling = await world.client.batches.cancel(created.id)
  expect(cancelling.status).toBe('cancelling')
  await eventually('their requests are aborted', () => world.upstream.held().length === 0)
  expect(world.gateway.logLines.filter((line) => line.includes('internal_error'))).toEqual([])
  const batch = await ended(world.client, created)
  expect(batch).toMatchObject({
    status: 'cancelled',
    request_counts: { total: 3, completed: 1, failed: 0 },
  })
  expect([...(await linesOf(world.client, batch.output_file_id)).keys()]).toEqual(['done'])
  const left = await linesOf(world.client, batch.error_file_id)
  expect([...left.keys()]).toEqual(['held-1', 'held-2'])
  expect(left.get('held-1')).toMatchObject({ response: null, error: { code: 'batch_cancelled' } })
  const refused = await world.client.batches.cancel(created.id).catch((error) => error)
  expect([refused.status, refused.code]).toEqual([409, 'batch_not_cancellable'])
})

test('an expired batch keeps its answers', async () => {
  const created = await createBatch(world.client, [responseLine('done'), responseLine('held-late')])
  await eventually('one line waits', () => world.upstream.held().length === 1)
  await eventually('one line is recorded', async () => {
    return (await world.client.batches.retrieve(created.id)).request_counts?.completed === 1
  })
  const { database, batchWork } = world.gateway.deps
  const later = new Date((created.expires_at ?? 0) * 1_000 + 1_000)
  const expired = await createBatchStore(database).expire(later, batchWork.addBatchJob)
  expect(expired).toEqual([created.id])
  for (const id of expired) await batchWork.announceClosed(id)
  const batch = await ended(world.client, created)
  expect(batch.status).toBe('expired')
  expect([...(await linesOf(world.client, batch.output_file_id)).keys()]).toEqual(['done'])
  const left = await linesOf(world.client, batch.error_file_id)
  expect(left.get('held-late')).toMatchObject({ error: { code: 'batch_expired' } })
  await eventually('its request is aborted', () => world.upstream.held().length === 0)
})

test('a key that is revoked midway ends the batch with the reason', async () => {
  const created = await world.gateway.post('/v1/api-keys', { name: 'batch' })
  const { id, key } = asRecord(await created.json())
  const holder = new OpenAI({
    baseURL: `${world.gateway.url}/v1`,
    apiKey: String(key),
    maxRetries: 0,
    fetch: checkedFetch,
  })
  const lines = ['held-a', ...Array.from({ length: 12 }, (_, n) => `after-${n}`)]
  world.upstream.intercept((text, response) => {
    if (!text.includes('after')) return false
    // Nothing is answered before the key is revoked.
    response.writeHead(503, { 'retry-after': '1' }).end()
    return true
  })
  const batch = await createBatch(
    holder,
    lines.map((line) => responseLine(line)),
  )
  await eventually('a line is in flight', () => world.upstream.held().length === 1)
  const revoked = await world.gateway.request(`/v1/api-keys/${id}`, { method: 'DELETE' })
  expect(revoked.status).toBe(200)
  const failed = await ended(world.client, batch)
  expect(failed.status).toBe('failed')
  expect(failed.errors?.data?.[0]).toMatchObject({ code: 'invalid_api_key', line: null })
  const left = await linesOf(world.client, failed.error_file_id)
  expect(left.size).toBe(lines.length)
  expect(left.get('after-3')).toMatchObject({ error: { code: 'invalid_api_key' } })
})

test('the input is kept though its file is deleted', async () => {
  const owner = await clientOf(world.gateway, 'deleter')
  const input = await uploadLines(owner, [responseLine('held-x'), responseLine('y')])
  const batch = await owner.batches.create({
    input_file_id: input,
    endpoint: '/v1/responses',
    completion_window: '24h',
  })
  await eventually('a line is held', () => world.upstream.held().length === 1)
  const token = await world.gateway.token(['users'], 'deleter')
  await fetch(`${world.gateway.url}/v1/files/${input}?permanent=true`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${token}` },
  })
  const { database, now } = world.gateway.deps
  const sha256 = (await createBatchStore(database).findById(batch.id))?.inputSha256 ?? ''
  const dropped: string[] = []
  const later = new Date(now().getTime() + 7_200_000)
  await createSweepStore(database).dropContents(later, async (one) => void dropped.push(one))
  expect(dropped).not.toContain(sha256)
  world.upstream.release()
  const { request_counts: counts } = await ended(owner, batch)
  expect(counts).toEqual({ total: 2, completed: 2, failed: 0 })
})
