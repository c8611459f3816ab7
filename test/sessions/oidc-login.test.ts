import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type LoginWorld, sessionOf, startLoginWorld } from './world.ts'

let world: LoginWorld

beforeAll(async () => {
  world = await startLoginWorld()
})
afterAll(() => world.stop())

test('a login at the provider gives the principal of its token', async () => {
  const browser = await world.logIn()
  const { user, session } = await sessionOf(browser, world.gateway.url)
  expect(user).toMatchObject({
    subject: 'ann',
    name: 'Ann Example',
    groups: [{ id: 'users' }],
    permissions: ['can_access_api'],
    auth: 'jwt',
  })
  expect(session).toMatchObject({ method: 'oidc' })
  const bearer = { authorization: `Bearer ${await world.gateway.token(['users'], 'ann')}` }
  const byToken = await (await world.gateway.request('/v1/me', { headers: bearer })).json()
  const bySession = await (await browser.call(`${world.gateway.url}/v1/me`)).json()
  expect(bySession).toEqual({ ...Object(byToken), name: 'Ann Example' })
})
