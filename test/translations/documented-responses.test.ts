import { expect, test } from 'bun:test'
import { useDescribedGateway } from '#test/support/described-gateway.ts'

const fixture = useDescribedGateway()
const german = 'PATCH /v1/translations/de'

test('responses match their documentation', async () => {
  const { ask } = fixture
  await ask(german, { json: { menu: { home: 'Start', end: 'Ende' }, form: { ok: 'Gut' } } })
  const { body, headers } = await ask(german, { json: { menu: { end: null }, form: null } })
  expect(body).toEqual({ de: { menu: { home: 'Start' } } })
  const tag = headers.get('etag') ?? ''
  const known = { headers: { 'if-none-match': tag } }
  expect((await ask('GET /v1/translations?language=de', known)).status).toBe(304)
  await ask('GET /v1/translations', { as: 'ann' })
  const status = await ask('GET /v1/translations/status')
  expect(status.body).toMatchObject({ languages: [{ language: 'de', texts: 1 }] })
  const reset = await ask('POST /v1/translations/reset', {
    json: { language: 'de' },
    headers: { 'if-match': tag },
  })
  expect(reset.body).toEqual({})
})

test('error responses match their documentation', async () => {
  const { ask } = fixture
  const forbidden = JSON.parse('{"menu":{"__proto__":"x"}}')
  for (const json of [{ menu: 'x' }, { menu: { home: 1 } }, forbidden]) {
    expect((await ask(german, { json })).status).toBe(422)
  }
  await ask('PATCH /v1/translations/de', { json: { menu: { home: 'x'.repeat(4_097) } } })
  expect((await ask('PATCH /v1/translations/_', { json: {} })).status).toBe(422)
  expect((await ask('GET /v1/translations?language=_')).status).toBe(422)
  const headers = { 'if-match': '"stale"' }
  expect((await ask(german, { json: {}, headers })).status).toBe(412)
  expect((await ask('POST /v1/translations/reset', { json: {}, headers })).status).toBe(412)
  expect((await ask('POST /v1/translations/reset', { json: { all: true } })).status).toBe(422)
})
