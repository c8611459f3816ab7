import { beforeAll, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import type { MessageBatch } from '@anthropic-ai/sdk/resources/messages'
import { createBatchStore } from '#batches/store.ts'
import { eventually } from '#test/support/eventually.ts'
import { batchWorld } from './world.ts'

/** Batches of messages through the `@anthropic-ai/sdk` package. */

const world = batchWorld({ batches: { linesMax: 8 } })
let client: Anthropic

const clientOf = async (subject: string) =>
  new Anthropic({
    baseURL: `${world.gateway.url}/compat`,
    authToken: await world.gateway.token(['users'], subject),
    apiKey: null,
    maxRetries: 0,
  })

beforeAll(async () => {
  client = await clientOf('tester')
})

const request = (custom_id: string, change: object = {}) => ({
  custom_id,
  params: {
    model: 'm',
    max_tokens: 64,
    messages: [{ role: 'user' as const, content: custom_id }],
    ...change,
  },
})
const create = (...requests: ReturnType<typeof request>[]) =>
  client.messages.batches.create({ requests })

async function ended({ id }: { id: string }): Promise<MessageBatch> {
  let batch = await client.messages.batches.retrieve(id)
  await eventually('the batch ends', async () => {
    batch = await client.messages.batches.retrieve(id)
    return batch.processing_status === 'ended'
  })
  return batch
}

async function resultsOf({ id }: { id: string }) {
  const results = new Map<string, object>()
  for await (const { custom_id, result } of await client.messages.batches.results(id)) {
    expect(results.has(custom_id)).toBeFalse()
    results.set(custom_id, result)
  }
  return results
}

test('a batch has a result for every request, and is deleted with them', async () => {
  const created = await create(request('one'), request('none', { model: 'none' }), request('two'))
  expect(created).toMatchObject({
    type: 'message_batch',
    processing_status: 'in_progress',
    request_counts: { processing: 3, succeeded: 0 },
    results_url: null,
  })
  const early = await client.messages.batches.delete(created.id).catch(({ status }) => status)
  expect([400, 'message_batch_deleted']).toContain(Object(early).type ?? early)
  const batch = await ended(created)
  expect(batch.request_counts).toEqual({
    processing: 0,
    succeeded: 2,
    errored: 1,
    canceled: 0,
    expired: 0,
  })
  const results = await resultsOf(batch)
  expect([...results.keys()].toSorted()).toEqual(['none', 'one', 'two'])
  expect(results.get('one')).toMatchObject({
    type: 'succeeded',
    message: { type: 'message', role: 'assistant', stop_reason: 'end_turn' },
  })
  expect(results.get('none')).toMatchObject({
    type: 'errored',
    error: { type: 'error', error: { type: 'not_found_error' } },
  })
  expect(await client.messages.batches.delete(batch.id)).toMatchObject({
    type: 'message_batch_deleted',
  })
  expect(await client.messages.batches.retrieve(batch.id).catch(({ status }) => status)).toBe(404)
})

test('cancelled and expired requests have results of their own', async () => {
  const cancelled = await create(request('done'), request('held-a'))
  await eventually('one is held', () => world.upstream.held().length === 1)
  await eventually('the other is recorded', async () => {
    const store = createBatchStore(world.gateway.deps.database)
    return (await store.findById(cancelled.id))?.completed === 1
  })
  expect((await client.messages.batches.cancel(cancelled.id)).processing_status).toBe('canceling')
  const batch = await ended(cancelled)
  expect(batch.request_counts).toMatchObject({ succeeded: 1, canceled: 1 })
  expect((await resultsOf(batch)).get('held-a')).toEqual({ type: 'canceled' })

  await eventually('nothing is held', () => world.upstream.held().length === 0)
  const late = await create(request('held-b'))
  await eventually('it is held', () => world.upstream.held().length === 1)
  const { database, batchWork } = world.gateway.deps
  const after = new Date(Date.parse(late.expires_at) + 1_000)
  await createBatchStore(database).expire(after, batchWork.addBatchJob)
  await batchWork.announceClosed(late.id)
  const expired = await ended(late)
  expect(expired.request_counts).toMatchObject({ expired: 1, succeeded: 0 })
  expect((await resultsOf(expired)).get('held-b')).toEqual({ type: 'expired' })
})

test('a batch that is cancelled while it is validated has a result for every request', async () => {
  const { database, batchWork, lineAnswers } = world.gateway.deps
  expect(lineAnswers.size).toBe(3)
  // Its first job waits until the batch is cancelled: both are in the database before it runs.
  const store = createBatchStore(database)
  const created = await create(request('held-c'), request('held-d'))
  const owner = { ownerId: (await store.findById(created.id))?.ownerId ?? '', isMessages: true }
  await store.cancel(owner, created.id, { addJob: batchWork.addBatchJob, now: new Date() })
  await batchWork.announceClosed(created.id)
  const results = await resultsOf(await ended(created))
  expect([...results.values()]).toEqual([{ type: 'canceled' }, { type: 'canceled' }])
})

test('a body that is no batch is refused in the shape of the protocol', async () => {
  const refused = (requests: unknown) =>
    client.messages.batches.create({ requests } as never).then(
      () => 'created',
      ({ status, error }) => `${status} ${error.error.type}: ${error.error.message}`,
    )
  expect(await refused([])).toBe('400 invalid_request_error: requests: must not be empty')
  expect(await refused([request('a'), request('a')])).toBe(
    '400 invalid_request_error: requests.1.custom_id: is used by an earlier request',
  )
  expect(await refused([{ custom_id: 'a b', params: {} }])).toStartWith(
    '400 invalid_request_error: requests.0.custom_id: must be 1 to 64',
  )
  expect(await refused([{ custom_id: 'a' }])).toBe(
    '400 invalid_request_error: requests.0.params: is required',
  )
  const many = Array.from({ length: 9 }, (_, n) => request(`${n}`))
  expect(await refused(many)).toBe('400 invalid_request_error: requests: may have 8 requests')
  const streamed = await ended(await create(request('s', { stream: true })))
  expect((await resultsOf(streamed)).get('s')).toMatchObject({
    error: { error: { type: 'invalid_request_error' } },
  })
})

test('a list has the batches of the caller in both directions; those of others are not found', async () => {
  client = await clientOf('lister')
  const created: string[] = []
  for (const name of ['a', 'b', 'c']) created.unshift((await create(request(name))).id)
  const listed: string[] = []
  for await (const { id } of client.messages.batches.list({ limit: 2 })) listed.push(id)
  expect(listed).toEqual(created)
  const [first = '', second = '', third = ''] = created
  const page = await client.messages.batches.list({ before_id: third, limit: 1 })
  expect([page.data.map(({ id }) => id), page.has_more]).toEqual([[second], true])
  for (const id of created) await ended({ id })

  const stranger = (await clientOf('stranger')).messages.batches
  const absent = (work: Promise<unknown>) =>
    work.then(
      () => 200,
      ({ status }) => status,
    )
  expect(await absent(stranger.retrieve(first))).toBe(404)
  expect(await absent(stranger.cancel(first))).toBe(404)
  expect(await absent(stranger.delete(first))).toBe(404)
  const results = await fetch(`${world.gateway.url}/compat/v1/messages/batches/${first}/results`, {
    headers: { authorization: `Bearer ${await world.gateway.token(['users'], 'stranger')}` },
  })
  expect(results.status).toBe(404)
  expect((await stranger.list()).data).toEqual([])
})
