import { beforeEach, expect, test } from 'bun:test'
import { pngOf } from '#test/support/pictures.ts'
import {
  outcome,
  type PortalCaller,
  type SentBody,
  startPortalGateway,
  usePortalGateway,
} from '#test/support/portal-gateway.ts'

/** The link in the theme, which an image on a page follows without a credential. */

const world = usePortalGateway()
const send: typeof world.gateway.send = (...asked) => world.gateway.send(...asked)
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
const follow = (link: string, who: PortalCaller = 'nobody') => send(who, `GET ${link}`)

test('it shows the logo to whoever has it, with a credential or without', async () => {
  expect((await follow(await linkOf())).status).toBe(200)
  const { body } = await post()
  const link = await linkOf()
  expect(link).toBe(String(body['logo_url']))
  for (const who of ['nobody', 'strangers', 'users'] as const) {
    const shown = await follow(link, who)
    expect([shown.status, shown.bytes]).toEqual([200, Uint8Array.from(pngOf(3, 2))])
    expect(shown.headers.get('content-security-policy')).toContain('sandbox')
  }
})

test('it is for the one logo that it was made for', async () => {
  const before = await linkOf()
  await post()
  const link = await linkOf()
  expect(link).not.toBe(before)
  expect(outcome(await follow(before))).toBe('401 missing_credentials')
  expect(outcome(await follow(before, 'strangers'))).toBe('403 permission_denied')
  expect(outcome(await follow(before, 'users'))).toBe('200')
  await send('admins', 'DELETE /v1/branding/logo')
  expect(await linkOf()).toBe(before)
  expect(outcome(await follow(link))).toBe('401 missing_credentials')
})

test('it is nothing without its signature, or with another', async () => {
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

test('it opens nothing else', async () => {
  const link = await linkOf()
  const query = link.slice(link.indexOf('?'))
  for (const how of ['GET /v1/branding/theme', 'DELETE /v1/branding/logo']) {
    expect(outcome(await send('nobody', how + query))).toBe('401 missing_credentials')
  }
})

test('made by one replica opens another', async () => {
  const other = await startPortalGateway(world.database)
  expect((await other.send('nobody', `GET ${await linkOf()}`)).status).toBe(200)
  await other.stop()
})
