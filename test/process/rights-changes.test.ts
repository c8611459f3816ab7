import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { eventually } from '#test/support/eventually.ts'
import { stopProcesses } from '#test/support/process.ts'
import { makeKey, type Replica, startReplicas, tokenOf } from '#test/support/rights-gateways.ts'
import { openSocket } from '#test/support/socket-client.ts'
import { openSpeech } from '#test/support/speech-client.ts'

/** Changes at one process reach open connections of another one, by notification alone. */

let here: Replica
let there: Replica
let stop: () => Promise<void>

beforeAll(async () => {
  const replicas = await startReplicas()
  here = replicas.here
  there = replicas.there
  stop = replicas.stop
})
afterAll(async () => {
  await stopProcesses()
  await stop()
})

const admin = () => tokenOf('root', ['admins'])
const ask = { model: 'open', input: 'Hi', store: false }

/** A user with a key and two open connections at the other process. */
async function connect(subject: string, groups = ['users', 'staff']) {
  const token = tokenOf(subject, groups, 600)
  const { id, key } = await makeKey(here, token)
  const responses = await openSocket(there.port(), { headers: { authorization: `Bearer ${key}` } })
  const speech = await openSpeech(there.port(), { token: key })
  await speech.start({})
  expect((await responses.turn(ask)).response).toMatchObject({ status: 'completed' })
  return { id, key, token, responses, speech }
}

describe('open connections end after', () => {
  test.each<[string, (subject: string, id: string, token: string) => Promise<unknown>, string]>([
    [
      'the revocation of their key',
      (_, id, token) => here.send(token, `DELETE /v1/api-keys/${id}`),
      'unauthorized',
    ],
    [
      'the revocation of their key by an administrator',
      (_, id) => here.send(admin(), `DELETE /v1/api-keys/${id}`),
      'unauthorized',
    ],
    [
      'the restriction of their key to other scopes',
      (_, id, token) => here.send(token, `PATCH /v1/api-keys/${id}`, { scopes: ['files'] }),
      'permission_denied',
    ],
    [
      'the restriction of their key to other addresses',
      (_, id) => here.send(admin(), `PATCH /v1/api-keys/${id}`, { allowed_ips: ['192.0.2.0/24'] }),
      'permission_denied',
    ],
    [
      'a rotation that lets the old secret not overlap',
      (_, id, token) => here.send(token, `POST /v1/api-keys/${id}/rotate`, { overlap_seconds: 0 }),
      'unauthorized',
    ],
    [
      'their user was disabled',
      (subject) => here.send(admin(), `PATCH /v1/users/${userIdOf(subject)}`, { disabled: true }),
      'unauthorized',
    ],
    [
      'their user has left every group with access',
      (subject) => here.send(tokenOf(subject, []), 'GET /v1/me'),
      'permission_denied',
    ],
  ])('%s', async (name, change, code) => {
    const { id, key, token, responses, speech } = await connect(name)
    await change(name, id, token)
    expect(await speech.refusal()).toMatchObject({ code, closeCode: 1008 })
    await eventually('the other connection is closed', () => responses.closeCode() !== null)
    expect(responses.closeCode()).toBe(1008)
    expect([401, 403]).toContain((await there.send(key, 'GET /v1/models')).status)
  })

  test('the permissions of their group were changed', async () => {
    const group = { name: 'callers', permissions: ['can_access_api'] }
    expect((await here.send(admin(), 'POST /v1/groups', group)).status).toBe(200)
    const { responses, speech } = await connect('cal', ['callers'])
    await here.send(admin(), 'PATCH /v1/groups/callers', { permissions: [] })
    expect(await speech.refusal()).toMatchObject({ code: 'permission_denied' })
    await eventually('the other connection is closed', () => responses.closeCode() !== null)
  })
})

describe('open connections go on, with the new rights, after', () => {
  test('a change of the models of their key', async () => {
    const { id, token, responses, speech } = await connect('amy')
    await here.send(token, `PATCH /v1/api-keys/${id}`, { models: ['listed-*'] })
    await eventually('the model is hidden', async () => {
      const { failure } = await responses.turn(ask)
      if (failure !== undefined) expect(failure).toMatchObject({ code: 'model_not_found' })
      return failure !== undefined
    })
    const { response } = await responses.turn({ ...ask, model: 'listed-secret' })
    expect(response).toMatchObject({ status: 'completed' })
    await speech.end()
    responses.socket.destroy()
  })

  test('their user has left the group of a model', async () => {
    const { responses, speech } = await connect('ben')
    const restricted = { ...ask, model: 'restricted' }
    expect((await responses.turn(restricted)).response).toMatchObject({ status: 'completed' })
    await here.send(tokenOf('ben', ['users']), 'GET /v1/me')
    await eventually('the model is hidden', async () => {
      const { failure } = await responses.turn(restricted)
      return failure !== undefined
    })
    expect((await responses.turn(ask)).response).toMatchObject({ status: 'completed' })
    await speech.end()
    responses.socket.destroy()
  })

  test('an administrator has changed the groups of a model', async () => {
    const { responses, speech } = await connect('bob')
    const setRules = async (access: object[]) => {
      const changed = await here.send(admin(), 'PATCH /v1/config', { models: { access } })
      expect(changed.status).toBe(200)
    }
    await setRules([{ models: 'op*', groups: ['directors'] }])
    await eventually('the model is hidden', async () => {
      const { failure } = await responses.turn(ask)
      return failure?.code === 'model_not_found'
    })
    await setRules([])
    await eventually('the model is back', async () => {
      return (await responses.turn(ask)).failure === undefined
    })
    await speech.end()
    responses.socket.destroy()
  })

  test('a rotation with an overlap, with either secret', async () => {
    const { id, key, token, responses, speech } = await connect('cas')
    const { body } = await here.send(token, `POST /v1/api-keys/${id}/rotate`)
    for (const bearer of [key, String(body['key'])]) {
      expect((await there.send(bearer, 'GET /v1/models')).status).toBe(200)
    }
    expect((await responses.turn(ask)).response).toMatchObject({ status: 'completed' })
    await speech.end()
    responses.socket.destroy()
  })

  test('the revocation of another key of their user', async () => {
    const { token, responses, speech } = await connect('dot')
    const { id, key } = await makeKey(here, token)
    await here.send(token, `DELETE /v1/api-keys/${id}`)
    await eventually('the key is refused', async () => {
      return (await there.send(key, 'GET /v1/models')).status === 401
    })
    expect((await responses.turn(ask)).response).toMatchObject({ status: 'completed' })
    await speech.end()
    responses.socket.destroy()
  })
})
