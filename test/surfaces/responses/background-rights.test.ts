import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { asRecord } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'

/** A background response has the rights that its user and key have when it runs. */

let upstream: ReplayUpstream
let gateway: Gateway
/** Lets the first request pass, which holds the only place of the queue. */
let release: () => void

beforeAll(async () => {
  upstream = await startReplayUpstream(({ body }) => ({ body: chatAnswer(body) }))
  gateway = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: [] }],
    model: [
      { name: 'open', upstreamModel: 'm' },
      { name: 'secret', upstreamModel: 'm', groups: ['staff'] },
    ],
    responses: { backgroundRunningMax: 1 },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const staffToken = () => gateway.token(['users', 'staff'], 'sam')

async function send(bearer: string, method: string, path: string, json?: object) {
  const response = await gateway.request(path, {
    method,
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
  return asRecord(await response.json())
}

const queue = (bearer: string, model: string) =>
  send(bearer, 'POST', '/v1/responses', { model, input: 'Hi', background: true })

beforeEach(async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  release = resolve
  const before = upstream.requests.length
  upstream.answer(({ body }) => ({
    body: chatAnswer(body),
    cutsAt: [1],
    nextPiece: () => promise,
  }))
  await queue(await gateway.token(['users'], 'first'), 'open')
  await eventually('the queue is occupied', () => upstream.requests.length > before)
})

/** The response that was queued, after `change`. */
async function outcomeAfter(
  bearer: string,
  model: string,
  change: () => Promise<unknown>,
  groups = ['users', 'staff'],
) {
  const queued = await queue(bearer, model)
  expect(queued['status']).toBe('queued')
  const before = upstream.requests.length
  await change()
  release()
  // A token of other groups than the last one would change those of the user.
  const reader = await gateway.token(groups, 'sam')
  let ended = queued
  await eventually('the response has ended', async () => {
    ended = await send(reader, 'GET', `/v1/responses/${queued['id']}`)
    return ended['status'] !== 'queued' && ended['status'] !== 'in_progress'
  })
  const isCalled = upstream.requests.length > before
  return { status: ended['status'], code: asRecord(ended['error'])['code'], isCalled }
}

async function makeKey(fields: object = {}): Promise<{ id: string; key: string }> {
  const made = await send(await staffToken(), 'POST', '/v1/api-keys', { name: 'k', ...fields })
  return { id: String(made['id']), key: String(made['key']) }
}

test('is completed with unchanged rights', async () => {
  const { key } = await makeKey({ models: ['secret'], scopes: ['inference'] })
  expect(await outcomeAfter(key, 'secret', async () => {})).toMatchObject({
    status: 'completed',
    isCalled: true,
  })
})

test('fails after its key was revoked', async () => {
  const { id, key } = await makeKey()
  const revoke = async () => send(await staffToken(), 'DELETE', `/v1/api-keys/${id}`)
  expect(await outcomeAfter(key, 'open', revoke)).toEqual({
    status: 'failed',
    code: 'invalid_api_key',
    isCalled: false,
  })
})

test.each([
  [{ models: ['secret'] }, 'model_not_found'],
  [{ scopes: ['files'] }, 'permission_denied'],
])('fails after its key was restricted to %j', async (fields, code) => {
  const { id, key } = await makeKey()
  const restrict = async () => send(await staffToken(), 'PATCH', `/v1/api-keys/${id}`, fields)
  expect(await outcomeAfter(key, 'open', restrict)).toEqual({
    status: 'failed',
    code,
    isCalled: false,
  })
})

test('fails after its user has left the group of the model', async () => {
  const { key } = await makeKey()
  const leave = async () => {
    const issuedLater = await gateway.token(['users'], 'sam')
    return send(issuedLater, 'GET', '/v1/models')
  }
  expect(await outcomeAfter(key, 'secret', leave, ['users'])).toEqual({
    status: 'failed',
    code: 'model_not_found',
    isCalled: false,
  })
})
