import { beforeEach, describe, expect, test } from 'bun:test'
import {
  outcome,
  type PortalUser,
  startPortalGateway,
  usePortalGateway,
} from '#test/support/portal-gateway.ts'

const fixture = usePortalGateway()
const send: typeof fixture.gateway.send = (...args) => fixture.gateway.send(...args)
const patch = (language: string, json: unknown, headers: Record<string, string> = {}) =>
  send('admins', `PATCH /v1/translations/${language}`, { json, headers })
const readAll = () => send('users', 'GET /v1/translations')

beforeEach(async () => {
  expect(outcome(await send('admins', 'POST /v1/translations/reset'))).toBe('200')
})

test('there are no overrides at first, and every user may read them', async () => {
  const response = await readAll()
  expect([response.status, response.body]).toEqual([200, {}])
  expect(response.headers.get('content-type')).toStartWith('application/json')
})

test('a patch sets texts, removes nulls and keeps the rest', async () => {
  await patch('de', { common: { save: 'Speichern', close: 'Zu' }, chat: { hello: 'Hallo' } })
  const response = await patch('de', { common: { close: null, open: 'Auf' } })
  const expected = { de: { chat: { hello: 'Hallo' }, common: { open: 'Auf', save: 'Speichern' } } }
  expect([response.status, response.body]).toEqual([200, expected])
  expect((await readAll()).body).toEqual(expected)
})

test('empty namespaces are removed', async () => {
  await patch('de', { a: { x: '1' }, b: { x: '1' }, c: { x: '1' } })
  expect((await patch('de', { a: { x: null }, b: null, d: {} })).body).toEqual({
    de: { c: { x: '1' } },
  })
  expect((await patch('de', { c: {} })).body).toEqual({ de: { c: { x: '1' } } })
  expect((await patch('de', { c: null })).body).toEqual({})
  expect((await readAll()).body).toEqual({})
})

test('one language can be listed alone', async () => {
  await patch('de', { a: { x: '1' } })
  await patch('fr', { a: { x: '2' } })
  const only = await send('users', 'GET /v1/translations?language=FR')
  expect(only.body).toEqual({ fr: { a: { x: '2' } } })
  expect((await send('users', 'GET /v1/translations?language=el')).body).toEqual({})
  expect(Object.keys((await readAll()).body)).toEqual(['de', 'fr'])
})

test.each([
  ['pt-br', 'pt-BR'],
  ['ZH-hant-tw', 'zh-Hant-TW'],
  ['iw', 'he'],
])('%s is stored as %s', async (given, stored) => {
  expect((await patch(given, { a: { x: '1' } })).body).toEqual({ [stored]: { a: { x: '1' } } })
})

test('the content type may be application/merge-patch+json', async () => {
  const type = { 'content-type': 'application/merge-patch+json' }
  expect((await patch('de', { a: { x: '1' } }, type)).body).toEqual({ de: { a: { x: '1' } } })
})

test('keys are opaque, and texts are returned verbatim', async () => {
  const texts = {
    'a.b:c/d': 'x',
    ' ': 'space',
    '1': 'one',
    toString: 'an inherited name',
    'Größe 📏': 'Zeile 1\nZeile 2\t"\\" <b>&amp;</b> 📏 \u202eolleh',
    empty: '',
  }
  await patch('de', { 'name space': texts })
  expect((await readAll()).body).toEqual({ de: { 'name space': texts } })
})

test('a reset deletes one language or all', async () => {
  for (const language of ['de', 'fr', 'el']) await patch(language, { a: { x: '1' } })
  const one = await send('admins', 'POST /v1/translations/reset', { json: { language: 'DE' } })
  expect([one.status, one.body]).toEqual([200, {}])
  expect(Object.keys((await readAll()).body)).toEqual(['el', 'fr'])
  const all = await send('admins', 'POST /v1/translations/reset', { json: {} })
  expect([all.status, all.body]).toEqual([200, {}])
  expect((await readAll()).body).toEqual({})
})

describe('permissions', () => {
  const routes = [
    'GET /v1/translations',
    'GET /v1/translations?language=de',
    'GET /v1/translations/status',
    'PATCH /v1/translations/de',
    'POST /v1/translations/reset',
  ]
  const users: [PortalUser, string[]][] = [
    ['anonymous', routes.map(() => '401 missing_credentials')],
    ['unpermitted', routes.map(() => '403 permission_denied')],
    ['users', ['200', '200', ...Array(3).fill('403 permission_denied')]],
    ['admins', routes.map(() => '200')],
  ]
  test.each(users)('%s', async (user, expected) => {
    const outcomes: string[] = []
    for (const route of routes) {
      const json = route.startsWith('GET') ? undefined : {}
      outcomes.push(outcome(await send(user, route, { json })))
    }
    expect(outcomes).toEqual(expected)
  })
})

describe('the entity tag', () => {
  const tagOf = async (path = '') =>
    (await send('users', `GET /v1/translations${path}`)).headers.get('etag') ?? ''

  test('changes with the texts, and is equal for equal texts', async () => {
    const empty = await tagOf()
    await patch('de', { a: { x: '1', y: '2' } })
    const first = await tagOf()
    await patch('de', { a: { x: '2' } })
    const second = await tagOf()
    expect(new Set([empty, first, second]).size).toBe(3)
    await patch('de', { a: { x: '1' } })
    expect(await tagOf()).toBe(first)
    for (const tag of [empty, first, second]) expect(tag).toMatch(/^"[0-9a-f]{64}"$/)
  })

  test('lets clients revalidate', async () => {
    await patch('de', { a: { x: '1' } })
    for (const path of ['', '?language=de']) {
      const tag = await tagOf(path)
      for (const known of [tag, `"other", W/${tag}`, '*']) {
        const headers = { 'if-none-match': known }
        const response = await send('users', `GET /v1/translations${path}`, { headers })
        expect([response.status, response.text, response.headers.get('etag')]).toEqual([
          304,
          '',
          tag,
        ])
      }
    }
    const headers = { 'if-none-match': await tagOf() }
    await patch('de', { a: { x: '2' } })
    expect((await send('users', 'GET /v1/translations', { headers })).status).toBe(200)
  })

  test('prevents lost updates', async () => {
    await patch('de', { a: { x: '1' } })
    const [all, german] = [await tagOf(), await tagOf('?language=de')]
    const changed = await patch('de', { a: { x: '2' } }, { 'if-match': german })
    expect(changed.status).toBe(200)
    for (const stale of [all, german, '"none"', `W/${changed.headers.get('etag')}`]) {
      const late = await patch('de', { a: { x: '3' } }, { 'if-match': stale })
      expect(outcome(late)).toBe('412 precondition_failed')
      expect(late.headers.get('etag')).toBe(changed.headers.get('etag'))
      const reset = await send('admins', 'POST /v1/translations/reset', {
        json: {},
        headers: { 'if-match': stale },
      })
      expect(outcome(reset)).toBe('412 precondition_failed')
      expect(reset.headers.get('etag')).toBe(await tagOf())
    }
    expect((await readAll()).body).toEqual({ de: { a: { x: '2' } } })
    for (const tag of [changed.headers.get('etag') ?? '', await tagOf(), '*']) {
      expect((await patch('de', { a: { x: '2' } }, { 'if-match': tag })).status).toBe(200)
    }
  })

  test('admits one of two concurrent changes', async () => {
    const tag = await tagOf()
    const responses = await Promise.all(
      ['x', 'y'].map((key) => patch('de', { a: { [key]: '1' } }, { 'if-match': tag })),
    )
    expect(responses.map(outcome).toSorted()).toEqual(['200', '412 precondition_failed'])
  })
})

test('concurrent patches on two replicas lose nothing', async () => {
  const other = await startPortalGateway(fixture.database)
  const keys = Array.from({ length: 40 }, (_, index) => `key ${index}`)
  const responses = await Promise.all(
    keys.map((key, index) =>
      (index % 2 === 0 ? fixture.gateway : other).send('admins', 'PATCH /v1/translations/de', {
        json: { a: { [key]: 'x' }, [`space ${index % 3}`]: { [key]: 'x' } },
      }),
    ),
  )
  expect(responses.map(outcome)).toEqual(keys.map(() => '200'))
  const { de } = Object((await other.send('users', 'GET /v1/translations')).body)
  expect(Object.keys(de.a).toSorted()).toEqual(keys.toSorted())
  const spread = ['space 0', 'space 1', 'space 2'].flatMap((space) => Object.keys(de[space]))
  expect(spread.toSorted()).toEqual(keys.toSorted())
  await other.stop()
})
