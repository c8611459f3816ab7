import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import {
  ask,
  gateway,
  listedNames,
  makeKey,
  openAgent,
  other,
  second,
  secretAgent,
  send,
  staff,
  startRightsWorld,
  stopRightsWorld,
} from './rights-world.ts'

/** The lists of API keys, and rules that administrators change, narrow what a caller may use. */

beforeAll(startRightsWorld)
afterAll(stopRightsWorld)

describe('a key with a list of models', () => {
  test('uses these alone, by any of their names', async () => {
    const key = await makeKey({ models: ['open', 'listed-*'] })
    for (const name of ['open', 'plain', 'vendor-model-open', 'listed-open', 'listed-secret']) {
      expect((await ask(key, name)).status).toBe(200)
    }
    expect((await ask(key, 'secret')).status).toBe(404)
    expect(await listedNames(key)).toEqual([
      'open',
      'listed-open',
      'listed-secret',
      'listed-shared',
      'plain',
      openAgent,
    ])
  })

  test('matches aliases and prefixed names', async () => {
    for (const pattern of ['plain', 'pl*', 'vendor-model-open', 'vendor-model-o*', 'vendor-*']) {
      const key = await makeKey({ models: [pattern] })
      expect((await ask(key, 'open')).status).toBe(200)
    }
  })

  test('never adds a right', async () => {
    const key = await makeKey({ models: ['*'] }, other)
    expect((await ask(key, 'open')).status).toBe(200)
    expect((await ask(key, 'secret')).status).toBe(404)
    expect((await ask(key, secretAgent)).status).toBe(404)
  })

  test('uses an agent on a listed model, and a listed agent on any model of its owner', async () => {
    const byModel = await makeKey({ models: ['open'] })
    expect((await ask(byModel, openAgent)).status).toBe(200)
    expect((await ask(byModel, secretAgent)).status).toBe(404)
    const byName = await makeKey({ models: [secretAgent] })
    expect((await ask(byName, secretAgent)).status).toBe(200)
    expect((await ask(byName, 'secret')).status).toBe(404)
    expect((await ask(byName, openAgent)).status).toBe(404)
    expect(await listedNames(byName)).toEqual([secretAgent])
    const others = await makeKey({ models: [secretAgent] }, other)
    expect((await ask(others, secretAgent)).status).toBe(404)
  })

  test('restricts built-in models and speech models too', async () => {
    const key = await makeKey({ models: ['open'] })
    const embed = (bearer: string) =>
      send(bearer, 'POST /v1/embeddings', { model: 'local-hash', input: 'a' })
    expect((await embed(key)).status).toBe(404)
    expect((await embed(await makeKey({ models: ['local-*'] }))).status).toBe(200)
    expect((await send(key, 'GET /v1/models/local-hash')).status).toBe(404)
    expect(await listedNames(await makeKey({ models: ['demo'] }))).toEqual(['demo'])
  })
})

describe('rules that administrators change at run time', () => {
  const admin = () => gateway.token(['users', 'admins'], 'adam')
  const setRules = async (access: object[]) => {
    const changed = await send(await admin(), 'PATCH /v1/config', { models: { access } })
    expect(changed.status).toBe(200)
  }
  afterEach(() => setRules([]))

  test('hide models and agents based on them at once, beside the rules of the file', async () => {
    expect((await ask(other, 'open')).status).toBe(200)
    await setRules([
      { models: 'pl*', groups: ['staff'] },
      { models: 'vendor-model-open', groups: ['guests'] },
    ])
    const guest = await gateway.token(['users', 'guests'], 'gil')
    for (const name of ['open', 'plain', openAgent]) {
      expect((await ask(other, name)).status).toBe(404)
      expect((await ask(staff, name)).status).toBe(200)
      expect((await ask(guest, name)).status).toBe(200)
    }
    expect(await listedNames(other)).not.toContain('open')
    expect((await ask(guest, 'secret')).status).toBe(404)
    await setRules([])
    expect((await ask(other, 'open')).status).toBe(200)
  })

  test('are shown to administrators alone', async () => {
    const access = [{ models: 'listed-*', groups: ['staff'] }]
    await setRules(access)
    expect((await send(await admin(), 'GET /v1/config')).body['models']).toEqual({ access })
    const shown = await send(other, 'GET /v1/config')
    expect(shown.body['models']).toEqual({ access: [] })
    const limits = { model: { secret: { requests_per_minute: 9 } } }
    await send(await admin(), 'PATCH /v1/config', { limits })
    expect((await send(other, 'GET /v1/config')).text).not.toContain('"secret"')
    expect((await send(await admin(), 'GET /v1/config')).body['limits']).toMatchObject(limits)
    await send(await admin(), 'PATCH /v1/config', { limits: { model: { secret: null } } })
  })

  test.each([
    [{ models: '', groups: ['a'] }],
    [{ models: 'a', groups: [] }],
    [{ models: 'a' }],
    [{ models: 'a', groups: ['a'], users: [] }],
  ])('refuse %j', async (rule) => {
    const body = { models: { access: [rule] } }
    expect((await send(await admin(), 'PATCH /v1/config', body)).status).toBe(422)
  })
})

describe('a fallback', () => {
  test('to a hidden model is not tried', async () => {
    const failing = { model: 'with-fallback', input: 'Hi', store: false }
    const usedBy = async (bearer: string) => {
      const before = second.requests.length
      const { status } = await send(bearer, 'POST /v1/responses', failing)
      return { status, isUsed: second.requests.length > before }
    }
    expect(await usedBy(staff)).toEqual({ status: 200, isUsed: true })
    expect(await usedBy(other)).toMatchObject({ isUsed: false })
    const key = await makeKey({ models: ['with-fallback'] })
    expect(await usedBy(key)).toMatchObject({ isUsed: false })
    const both = await makeKey({ models: ['with-fallback', 'stand-in'] })
    expect(await usedBy(both)).toEqual({ status: 200, isUsed: true })
  })
})
