import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { createBatch, responseLine } from '#test/batches/world.ts'
import { eventually } from '#test/support/eventually.ts'
import { deliveryQueue } from '#webhooks/deliver.ts'
import { createDeliveryStore } from '#webhooks/delivery-store.ts'
import { type Received, startWebhookWorld, type WebhookWorld } from './world.ts'

/** Deliveries, verified with the `openai` and the `standardwebhooks` package. */

let world: WebhookWorld
let { client, create, deliveriesOf, gateway, receiver } = {} as WebhookWorld

beforeAll(async () => {
  world = await startWebhookWorld()
  ;({ client, create, deliveriesOf, gateway, receiver } = world)
})
afterAll(() => world.stop())
beforeEach(() => Object.assign(receiver.state, { status: 200, headers: {} }))

const headersOf = ({ headers }: Received) => headers as Record<string, string>

test('the end of a batch and of a background response is delivered once, signed for both packages', async () => {
  const endpoint = await create('/signed')
  expect(endpoint.signing_secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  const batch = await createBatch(client, [responseLine('one')])
  const failed = await createBatch(client, ['no JSON'])
  const response = await client.responses.create({ model: 'm', input: 'Hi', background: true })
  const stored = await client.responses.create({ model: 'm', input: 'Hi', store: true })
  await eventually('three events arrive', () => receiver.at('/signed').length === 3)
  const events = await Promise.all(
    receiver
      .at('/signed')
      .map((one) => client.webhooks.unwrap(one.body, headersOf(one), endpoint.signing_secret)),
  )
  const found = events.map(({ type, data }) => `${type} ${Object(data).id}`).toSorted()
  expect(found).toEqual([
    `batch.completed ${batch.id}`,
    `batch.failed ${failed.id}`,
    `response.completed ${response.id}`,
  ])
  expect(found.join()).not.toContain(stored.id)
  for (const one of receiver.at('/signed')) {
    const verified = new Webhook(endpoint.signing_secret).verify(one.body, headersOf(one))
    expect(verified).toMatchObject({ object: 'event' })
    const forged = { ...headersOf(one), 'webhook-id': 'wh_other' }
    expect(() => new Webhook(endpoint.signing_secret).verify(one.body, forged)).toThrow()
  }
  await eventually('they are logged', async () => {
    const logged = await deliveriesOf(endpoint.id)
    return logged.length === 3 && logged.every(({ status }) => status === 'delivered')
  })
  await client.webhooks.delete(endpoint.id)
})

test('a rotated secret replaces the old one, or signs beside it', async () => {
  const endpoint = await create('/rotated')
  const sent = async () => {
    const before = receiver.at('/rotated').length
    const result = await client.webhooks.test(endpoint.id, { event_type: 'batch.completed' })
    expect(result).toMatchObject({ object: 'webhook_endpoint.test', status_code: 200 })
    return receiver.at('/rotated')[before] as Received
  }
  const accepts = (one: Received, secret: string) =>
    client.webhooks.unwrap(one.body, headersOf(one), secret).then(
      () => true,
      () => false,
    )
  const both = await client.webhooks.rotateSecret(endpoint.id, {
    keep_old_secret_active_for_24_hours: true,
  })
  const first = await sent()
  expect(await accepts(first, endpoint.signing_secret)).toBeTrue()
  expect(await accepts(first, both.signing_secret)).toBeTrue()
  const last = await client.webhooks.rotateSecret(endpoint.id)
  const second = await sent()
  expect(await accepts(second, both.signing_secret)).toBeFalse()
  expect(await accepts(second, last.signing_secret)).toBeTrue()
  const { database } = gateway.deps
  const rows = JSON.stringify(await database.drizzle.execute('select * from webhook_endpoint'))
  for (const { signing_secret: secret } of [endpoint, both, last]) {
    expect(rows).not.toContain(secret.slice(6, -1))
    expect(gateway.logLines.join('\n')).not.toContain(secret.slice(6, -1))
  }
  await client.webhooks.delete(endpoint.id)
})

test('a failed delivery is repeated with the same id until it is accepted', async () => {
  receiver.state.status = 503
  const endpoint = await create('/busy')
  await createBatch(client, [responseLine('one')])
  await eventually('it is refused', () => receiver.at('/busy').length === 1)
  await eventually('the attempt is logged', async () => {
    const [delivery] = await deliveriesOf(endpoint.id)
    return delivery?.['status'] === 'pending' && delivery['attempts'] === 1
  })
  const [pending] = await deliveriesOf(endpoint.id)
  expect(pending?.['attempt_log']).toMatchObject([{ status_code: 503, error: null }])
  const wait = Number(pending?.['next_attempt_at']) - Number(pending?.['created_at'])
  expect(wait).toBeWithin(4, 60)
  receiver.state.status = 204
  // The next attempt is due now.
  const { database } = gateway.deps
  await eventually('its job waits', async () => {
    const due = await database.drizzle.execute(
      `update job set run_at = now() where queue = '${deliveryQueue}' and locked_by is null returning 1`,
    )
    return due.length === 1
  })
  await eventually('it is delivered', async () => {
    return (await deliveriesOf(endpoint.id))[0]?.['status'] === 'delivered'
  })
  const ids = receiver.at('/busy').map(({ headers }) => headers['webhook-id'])
  expect(ids).toEqual([String(pending?.['id']), String(pending?.['id'])])

  // By hand it is sent once more.
  const path = `/v1/webhook_endpoints/${endpoint.id}/deliveries/${pending?.['id']}/retry`
  expect((await gateway.post(path, undefined)).status).toBe(200)
  await eventually('it arrives again', () => receiver.at('/busy').length === 3)
  await client.webhooks.delete(endpoint.id)
})

test('a delivery is given up at its age, and at once where the receiver is gone', async () => {
  receiver.state.status = 410
  const endpoint = await create('/gone')
  await createBatch(client, [responseLine('one')])
  await eventually('it is given up', async () => {
    const [delivery] = await deliveriesOf(endpoint.id)
    return delivery?.['status'] === 'failed' && delivery['attempts'] === 1
  })
  receiver.state.status = 500
  const { database, webhooks, now } = gateway.deps
  const config = gateway.deps.config.webhooks as { ageMaxS: number }
  const { ageMaxS } = config
  config.ageMaxS = 1
  await database.drizzle.transaction((transaction) =>
    webhooks.announce(transaction, {
      type: 'batch.completed',
      ownerId: '00000000-0000-4000-8000-000000000000',
      objectId: 'batch_x',
      at: now(),
    }),
  )
  expect(await deliveriesOf(endpoint.id)).toHaveLength(1)
  await createBatch(client, [responseLine('two')])
  await eventually('the second is given up too', async () => {
    const all = await deliveriesOf(endpoint.id)
    return all.length === 2 && all.every(({ status }) => status === 'failed')
  })
  config.ageMaxS = ageMaxS
  await client.webhooks.delete(endpoint.id)
})

test('the end of a response is announced once by several searches', async () => {
  const endpoint = await create('/once')
  const created = await Promise.all(
    [1, 2, 3].map(() => client.responses.create({ model: 'm', input: 'Hi', background: true })),
  )
  await eventually('they end', async () => {
    const found = await Promise.all(created.map(({ id }) => client.responses.retrieve(id)))
    return found.every(({ status }) => status === 'completed')
  })
  const deliveries = createDeliveryStore(gateway.deps.database)
  const given = { ageMaxS: 60, addJob: async () => {} }
  await Promise.all([1, 2, 3].map(() => deliveries.announceResponses(given)))
  // A search of the gateway may have found them, in a transaction that has not ended.
  await eventually('all are announced', async () => (await deliveriesOf(endpoint.id)).length >= 3)
  await deliveries.announceResponses(given)
  expect(await deliveriesOf(endpoint.id)).toHaveLength(3)
  await client.webhooks.delete(endpoint.id)
})
