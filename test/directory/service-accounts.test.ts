import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isServiceSubject, userIdOf } from '#auth/principal.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  column,
  type DirectoryGateway,
  makeKey,
  outcome,
  root,
  startReplicas,
} from './directory-gateway.ts'

let two: Awaited<ReturnType<typeof startReplicas>>
let here: DirectoryGateway
let there: DirectoryGateway

beforeAll(async () => {
  two = await startReplicas()
  here = two.here
  there = two.there
})
afterAll(() => two.stop())

const create = (json: unknown) => here.send('POST /v1/service-accounts', { json })
/** When an account was seen last is written down a little later. */
async function serviceNames(): Promise<unknown[]> {
  return column(await here.send('GET /v1/users?kind=service&limit=100'), 'name')
}
const keysOf = (id: string) => `/v1/service-accounts/${id}/api-keys`

async function createWithKey(groups: readonly string[] = ['users']) {
  const id = String((await create({ name: 'robot', groups })).body['id'])
  const made = await here.send(`POST ${keysOf(id)}`, { json: { name: 'host' } })
  return { id, keyId: String(made.body['id']), key: String(made.body['key']) }
}

describe('a service account', () => {
  test('is a user in the given groups', async () => {
    const { body } = await create({ name: ' nightly import ', groups: ['users', 'users'] })
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      object: 'user',
      kind: 'service',
      subject: `sluice-service:${body['id']}`,
      name: 'nightly import',
      disabled_at: null,
      last_seen_at: null,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      created_by: root,
      groups: [{ id: 'users', name: 'users', sources: ['manual'], is_known: true }],
      permissions: ['can_access_api'],
    })
    expect((await here.send(`GET /v1/users/${body['id']}`)).body).toEqual(body)
    expect(userIdOf(String(body['subject']))).toBe(String(body['id']))
  })

  test('has keys that administrators restrict and rotate, on every replica', async () => {
    const { id, keyId, key } = await createWithKey()
    const statusOf = async (bearer: string) => outcome(await there.send('GET /v1/me', { bearer }))
    expect(await statusOf(key)).toBe('200')
    const path = `${keysOf(id)}/${keyId}`
    const changed = await here.send(`PATCH ${path}`, { json: { scopes: ['files'] } })
    expect(changed.body).toMatchObject({ id: keyId, user_id: id, scopes: ['files'] })
    const rotated = await here.send(`POST ${path}/rotate`, { json: { overlap_seconds: 0 } })
    expect(await statusOf(String(rotated.body['key']))).toBe('200')
    await eventually('the old secret is refused', async () => {
      return (await statusOf(key)) === '401 invalid_api_key'
    })
    const other = String((await create({ name: 'another' })).body['id'])
    for (const operation of ['PATCH', 'POST'] as const) {
      const place = `${keysOf(other)}/${keyId}${operation === 'POST' ? '/rotate' : ''}`
      expect(outcome(await here.send(`${operation} ${place}`, { json: {} }))).toBe('404 not_found')
    }
  })

  test('authenticates by its key, which is shown once', async () => {
    const { id, keyId, key } = await createWithKey()
    expect((await here.send('GET /v1/me', { bearer: key })).body).toEqual({
      id,
      object: 'user',
      kind: 'service',
      subject: `sluice-service:${id}`,
      name: 'robot',
      groups: [{ id: 'users', name: 'users' }],
      permissions: ['can_access_api'],
      auth: 'api_key',
      api_key_id: keyId,
    })
    const listed = await here.send(`GET ${keysOf(id)}`)
    expect(column(listed, 'id')).toEqual([keyId])
    expect(JSON.stringify(listed.body)).not.toContain(key)
    await eventually('its key was noted', async () => {
      const { body } = await here.send(`GET /v1/users/${id}`)
      return body['last_seen_at'] !== null
    })
  })

  test('without a group that grants can_access_api every request is 403', async () => {
    const { id, key } = await createWithKey([])
    expect(outcome(await here.send('GET /v1/me', { bearer: key }))).toBe('403 permission_denied')
    await here.send(`PUT /v1/groups/users/members/${id}`)
    expect(outcome(await here.send('GET /v1/me', { bearer: key }))).toBe('200')
  })

  test('may manage groups with the permission, but creates no keys', async () => {
    const { id, key: bearer } = await createWithKey(['admins'])
    expect(outcome(await here.send('GET /v1/users', { bearer }))).toBe('200')
    const json = { name: 'one more' }
    const made = await here.send(`POST ${keysOf(id)}`, { bearer, json })
    expect(outcome(made)).toBe('403 jwt_required')
  })

  test('never authenticates by a token, even with its subject', async () => {
    const { id } = await createWithKey()
    for (const subject of [`sluice-service:${id}`, 'sluice-service:', 'sluice-service:x']) {
      expect(isServiceSubject(subject)).toBe(true)
      const bearer = here.token(subject, ['admins'])
      expect(outcome(await here.send('GET /v1/me', { bearer }))).toBe('401 invalid_token')
    }
    const bearer = here.token(id, ['users'])
    expect((await here.send('GET /v1/me', { bearer })).body['id']).not.toBe(id)
  })

  test('can be renamed, disabled and enabled', async () => {
    const { id, key } = await createWithKey()
    expect(await there.statusOf(key)).toBe(200)
    const change = (json: unknown) => here.send(`PATCH /v1/users/${id}`, { json })
    expect((await change({ name: 'arm', disabled: true })).body).toMatchObject({ name: 'arm' })
    expect(outcome(await here.send('GET /v1/me', { bearer: key }))).toBe('401 user_disabled')
    await eventually(
      'the other replica refuses it',
      async () => (await there.statusOf(key)) === 401,
    )
    await change({ disabled: false })
    expect((await here.send('GET /v1/me', { bearer: key })).body['name']).toBe('arm')
  })

  test('its keys are rejected after its deletion', async () => {
    const { id, key } = await createWithKey()
    expect(await there.statusOf(key)).toBe(200)
    expect(outcome(await here.send(`DELETE /v1/service-accounts/${id}`))).toBe('200')
    expect(await here.statusOf(key)).toBe(401)
    await eventually(
      'the other replica refuses it',
      async () => (await there.statusOf(key)) === 401,
    )
    for (const how of [
      `DELETE /v1/service-accounts/${id}`,
      `GET ${keysOf(id)}`,
      `GET /v1/users/${id}`,
      `DELETE ${keysOf(id)}/${id}`,
    ]) {
      expect(outcome(await here.send(how))).toBe('404 not_found')
    }
    const again = await here.send(`POST ${keysOf(id)}`, { json: { name: 'x' } })
    expect(outcome(again)).toBe('404 not_found')
  })

  test('a concurrent deletion and key creation leave no key', async () => {
    const { id } = await createWithKey()
    const [made] = await Promise.all([
      here.send(`POST ${keysOf(id)}`, { json: { name: 'late' } }),
      there.send(`DELETE /v1/service-accounts/${id}`),
    ])
    expect(['200', '404 not_found']).toContain(outcome(made))
    if (made.status === 200) {
      const key = String(made.body['key'])
      await eventually('it is refused', async () => (await here.statusOf(key)) === 401)
    }
    expect(outcome(await here.send(`GET /v1/users/${id}`))).toBe('404 not_found')
  })

  test('revoking one key keeps the others', async () => {
    const { id, keyId, key } = await createWithKey()
    const other = await here.send(`POST ${keysOf(id)}`, { json: { name: 'other' } })
    expect(await there.statusOf(key)).toBe(200)
    expect(outcome(await here.send(`DELETE ${keysOf(id)}/${keyId}`))).toBe('200')
    expect(await here.statusOf(key)).toBe(401)
    expect(await here.statusOf(String(other.body['key']))).toBe(200)
    await eventually(
      'the other replica refuses it',
      async () => (await there.statusOf(key)) === 401,
    )
    expect(outcome(await here.send(`DELETE ${keysOf(id)}/${keyId}`))).toBe('404 not_found')
    expect(outcome(await here.send(`DELETE ${keysOf(id)}/x`))).toBe('404 not_found')
  })

  test('service account endpoints do not accept persons', async () => {
    const bearer = here.token('ann', ['users'])
    const { id: keyId } = await makeKey(here, bearer)
    const ann = userIdOf('ann')
    expect(outcome(await here.send(`DELETE /v1/service-accounts/${ann}`))).toBe('404 not_found')
    expect(outcome(await here.send(`GET ${keysOf(ann)}`))).toBe('404 not_found')
    expect(outcome(await here.send(`DELETE ${keysOf(ann)}/${keyId}`))).toBe('404 not_found')
    const made = await here.send(`POST ${keysOf(ann)}`, { json: { name: 'x' } })
    expect(outcome(made)).toBe('404 not_found')
    expect(outcome(await here.send('DELETE /v1/service-accounts/x'))).toBe('404 not_found')
  })

  test.each<[unknown, string, string | null]>([
    [{}, 'unprocessable', 'name'],
    [{ name: '' }, 'unprocessable', 'name'],
    [{ name: 'x'.repeat(101) }, 'unprocessable', 'name'],
    [{ name: 'a\nb' }, 'unprocessable', 'name'],
    [{ name: 'a', groups: 'users' }, 'unprocessable', 'groups'],
    [{ name: 'a', groups: ['users', 'nobody'] }, 'group_not_found', 'groups[1]'],
    [{ name: 'a', groups: ['a\0b'] }, 'unprocessable', 'groups[0]'],
    [{ name: 'a', groups: Array(101).fill('users') }, 'unprocessable', 'groups'],
    [{ name: 'a', subject: 'ann' }, 'unknown_field', 'subject'],
  ])('is not made of %j', async (json, code, param) => {
    const before = await serviceNames()
    expect(await create(json)).toMatchObject({ status: 422, body: { error: { code, param } } })
    expect(await serviceNames()).toEqual(before)
  })
})
