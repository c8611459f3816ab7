import { beforeEach, expect, test } from 'bun:test'
import {
  outcome,
  type PortalUser,
  type SentBody,
  startPortalGateway,
  usePortalGateway,
} from '#test/support/portal-gateway.ts'
import { pngOf } from '#test/support/sample-images.ts'

const fixture = usePortalGateway()
const send: typeof fixture.gateway.send = (...args) => fixture.gateway.send(...args)
const post = () =>
  send('admins', 'POST /v1/branding/logo', {
    body: pngOf(3, 2) as SentBody,
    headers: { 'content-type': 'image/png' },
  })

beforeEach(async () => {
  expect(outcome(await send('admins', 'DELETE /v1/branding/logo'))).toBe('204')
})

const linkOf = async (): Promise<string> =>
  String((await send('users', 'GET /v1/branding/theme')).body['logo_url'])
const follow = (link: string, who: PortalUser = 'anonymous') => send(who, `GET ${link}`)

test('the signed link shows the logo with any credential and without one', async () => {
  expect((await follow(await linkOf())).status).toBe(200)
  const { body } = await post()
  const link = await linkOf()
  expect(link).toBe(String(body['logo_url']))
  for (const who of ['anonymous', 'unpermitted', 'users'] as const) {
    const shown = await follow(link, who)
    expect([shown.status, shown.bytes]).toEqual([200, Uint8Array.from(pngOf(3, 2))])
    expect(shown.headers.get('content-security-policy')).toContain('sandbox')
  }
})

test('a link is valid for one logo only', async () => {
  const before = await linkOf()
  await post()
  const link = await linkOf()
  expect(link).not.toBe(before)
  expect(outcome(await follow(before))).toBe('401 missing_credentials')
  expect(outcome(await follow(before, 'unpermitted'))).toBe('403 permission_denied')
  expect(outcome(await follow(before, 'users'))).toBe('200')
  await send('admins', 'DELETE /v1/branding/logo')
  expect(await linkOf()).toBe(before)
  expect(outcome(await follow(link))).toBe('401 missing_credentials')
})

test('a link without a valid signature needs a credential', async () => {
  const link = await linkOf()
  const [path = '', signature = ''] = link.split('&sig=')
  const last = signature.endsWith('A') ? 'B' : 'A'
  const forged = [
    '/v1/branding/logo',
    path,
    `${path}&sig=`,
    `${path}&sig=${signature.slice(0, -1)}`,
    `${path}&sig=${signature.slice(0, -2)}${last}${signature.slice(-1)}`,
    `${path}&sig=${signature}${last}`,
    `${path}&sig=${encodeURIComponent('ä'.repeat(43))}`,
    `/v1/branding/logo?sig=${signature}`,
    `/v1/branding/logo?v=&sig=${signature}`,
    `${path.slice(0, -1)}&sig=${signature}`,
    link.replace('?v=', '?v=x'),
  ]
  for (const attempt of forged) {
    expect(outcome(await follow(attempt)), attempt).toBe('401 missing_credentials')
    expect(outcome(await follow(attempt, 'users')), attempt).toBe('200')
  }
})

test('a link gives access to no other endpoint', async () => {
  const link = await linkOf()
  const query = link.slice(link.indexOf('?'))
  for (const how of ['GET /v1/branding/theme', 'DELETE /v1/branding/logo']) {
    expect(outcome(await send('anonymous', how + query))).toBe('401 missing_credentials')
  }
})

test('a link made by one replica is valid on another', async () => {
  const other = await startPortalGateway(fixture.database)
  expect((await other.send('anonymous', `GET ${await linkOf()}`)).status).toBe(200)
  await other.stop()
})
