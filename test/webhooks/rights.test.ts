import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { asRecord, parseJson } from '#lib/json.ts'
import { clientOf, createBatch, responseLine } from '#test/batches/world.ts'
import { eventually } from '#test/support/eventually.ts'
import { startWebhookWorld, type WebhookWorld } from './world.ts'

/** What webhooks may reach, and who may manage them. */

let world: WebhookWorld
let { admin, client, create, deliveriesOf, gateway, receiver } = {} as WebhookWorld

beforeAll(async () => {
  world = await startWebhookWorld()
  ;({ admin, client, create, deliveriesOf, gateway, receiver } = world)
})
afterAll(() => world.stop())
beforeEach(() => Object.assign(receiver.state, { status: 200, headers: {} }))

describe('requests to other networks', () => {
  const refused = (url: string) =>
    client.webhooks.create({ name: 'x', url, event_types: ['batch.completed'] }).then(
      () => 'created',
      ({ status, param }) => `${status} ${param}`,
    )

  test.each([
    'http://93.184.216.34/',
    'https://10.0.0.1/',
    'https://[::1]/',
    'https://[::ffff:a9fe:a9fe]/',
    'https://169.254.169.254/latest/meta-data',
    'https://user:secret@93.184.216.34/',
    'https://93.184.216.34:8443/',
    'https://no-such-host.invalid/',
    'ftp://93.184.216.34/',
    'hook',
  ])('%s is no URL for a webhook', async (url) => {
    expect(await refused(url)).toBe('400 url')
  })

  test('an address that has become private since is not contacted, and redirects are not followed', async () => {
    const endpoint = await create('/inside')
    receiver.state.status = 302
    receiver.state.headers = { location: `${receiver.url}/elsewhere` }
    const redirected = await client.webhooks
      .test(endpoint.id, { event_type: 'batch.completed' })
      .catch(({ status, code }) => `${status} ${code}`)
    expect(redirected).toBe('502 upstream_invalid_answer')
    expect(receiver.at('/elsewhere')).toEqual([])
    expect(receiver.at('/inside')).toHaveLength(1)

    const config = gateway.deps.config.webhooks as { privateHosts: string[] }
    const { privateHosts } = config
    config.privateHosts = []
    const inside = await client.webhooks
      .test(endpoint.id, { event_type: 'batch.completed' })
      .catch(({ status }) => status)
    config.privateHosts = privateHosts
    expect(inside).toBe(400)
    expect(receiver.at('/inside')).toHaveLength(1)
    const [log] = await deliveriesOf(endpoint.id)
    expect(log).toMatchObject({ status: 'failed', test: true, attempts: 1 })
    await client.webhooks.delete(endpoint.id)
  })

  test('the body of an answer is not read', async () => {
    const endpoint = await create('/endless')
    const event = { event_type: 'batch.completed' } as const
    expect((await client.webhooks.test(endpoint.id, event)).status_code).toBe(200)
    await eventually('the connection is closed', () => receiver.endless() === 0)
    await client.webhooks.delete(endpoint.id)
  })
})

describe('rights', () => {
  const statusOf = (work: Promise<unknown>) =>
    work.then(
      () => 200,
      ({ status }) => status,
    )

  test('an endpoint of another user is not found, and gets none of the events of others', async () => {
    const endpoint = await create('/own')
    const stranger = await clientOf(gateway, 'stranger')
    const theirs = await create('/theirs', {}, stranger)
    for (const by of [stranger, admin]) {
      expect(await statusOf(by.webhooks.retrieve(endpoint.id))).toBe(404)
      expect(await statusOf(by.webhooks.update(endpoint.id, { name: 'y' }))).toBe(404)
      expect(await statusOf(by.webhooks.rotateSecret(endpoint.id))).toBe(404)
      const event = { event_type: 'batch.completed' } as const
      expect(await statusOf(by.webhooks.test(endpoint.id, event))).toBe(404)
      expect(await statusOf(by.webhooks.delete(endpoint.id))).toBe(404)
      const listed = (await by.webhooks.list()).data.map(({ id }) => id)
      expect(listed).not.toContain(endpoint.id)
    }
    await createBatch(client, [responseLine('one')])
    await eventually('the owner gets it', () => receiver.at('/own').length === 1)
    expect(await deliveriesOf(theirs.id, stranger)).toEqual([])
    await client.webhooks.delete(endpoint.id)
    await stranger.webhooks.delete(theirs.id)
  })

  test('an endpoint of the organisation needs its right, and gets the events of everyone', async () => {
    expect(await statusOf(create('/all', { scope: 'organization' }))).toBe(403)
    const endpoint = await create('/all', { scope: 'organization' }, admin)
    expect(await statusOf(client.webhooks.retrieve(endpoint.id))).toBe(404)
    const batch = await createBatch(client, [responseLine('one')])
    await eventually('the event arrives', () => receiver.at('/all').length === 1)
    const [one] = receiver.at('/all')
    expect(asRecord(parseJson(one?.body ?? ''))).toMatchObject({ data: { id: batch.id } })
    const changed = await admin.webhooks.update(endpoint.id, { event_types: ['batch.failed'] })
    expect(changed).toMatchObject({ event_types: ['batch.failed'], name: 'Hook' })
    const audit = await fetch(`${gateway.url}/v1/audit-log?limit=5`, {
      headers: { authorization: `Bearer ${admin.apiKey}` },
    })
    const text = await audit.text()
    expect(text).toContain('webhook_endpoint.update')
    expect(text).not.toContain(endpoint.signing_secret.slice(6, 20))
    await admin.webhooks.delete(endpoint.id)
  })

  test('the endpoints of a user are limited', async () => {
    const owner = await clientOf(gateway, 'many')
    for (let n = 0; n < 4; n++) await create(`/many/${n}`, {}, owner)
    const one = await create('/many/4', {}, owner).catch(({ code }) => code)
    expect(one).toBe('too_many_webhook_endpoints')
    const listed: string[] = []
    for await (const { id } of owner.webhooks.list({ limit: 3 })) listed.push(id)
    expect(new Set(listed).size).toBe(4)
    expect((await owner.webhooks.eventTypes.list()).data).toContain('response.incomplete')
  })
})
