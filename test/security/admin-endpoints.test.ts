import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { listEndpoints } from '#app.ts'
import { userIdOf } from '#auth/principal.ts'
import { startGateway } from '#test/support/gateway.ts'
import { checkEndpoint, inOrder, isAdministrative } from './endpoint-checks.ts'
import type { Kind, KnownIds } from './endpoint-requests.ts'
import { fillTenant, mergeIds, tenantOptions } from './tenants.ts'

/** Every administrative endpoint, as `endpoints.test.ts` does it for users. */
const runs: Readonly<Record<Kind, number>> = { valid: 6, spoilt: 15, broken: 5 }
const kinds: readonly Kind[] = ['valid', 'spoilt', 'broken']

/** A key that the administrator must not see either. */
const secret = 'sk-upstream-secret-0123456789'

const gateway = await startGateway({
  ...tenantOptions,
  upstream: [
    { name: 'demo', api: 'demo' },
    { name: 'absent', url: 'http://127.0.0.1:1/v1', key: secret, models: ['m'] },
  ],
  installer: { hosts: [], reserveBytes: 0 },
})
const endpoints = listEndpoints(gateway.deps).filter(isAdministrative)
const statuses: Record<Kind, number[]> = { valid: [], spoilt: [], broken: [] }
let bearer: string
let ids: KnownIds

beforeAll(async () => {
  bearer = await gateway.token(['admins'], 'root')
  const own = await fillTenant(gateway, bearer, 'mine')
  await gateway.request('/v1/me')
  await gateway.request('/v1/groups', {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'made', permissions: [] }),
  })
  ids = {
    ...mergeIds([own]),
    users: [userIdOf('tester')],
    members: [userIdOf('tester')],
    groups: ['made'],
    upstreams: ['absent'],
    translations: ['de'],
  }
})
afterAll(() => gateway.stop())

describe.each(kinds)('%s requests', (kind) => {
  test.each(inOrder(endpoints))('%s', async (_, endpoint) => {
    const onStatus = (status: number) => statuses[kind].push(status)
    await checkEndpoint(endpoint, kind, runs[kind], {
      gateway,
      bearer,
      ids,
      canary: secret,
      onStatus,
    })
  })
})

test('some valid requests succeed, and most spoilt ones do not', () => {
  const successes = (kind: Kind) => statuses[kind].filter((status) => status < 300).length
  expect(successes('valid') / statuses.valid.length).toBeGreaterThan(0.2)
  expect(successes('spoilt') / statuses.spoilt.length).toBeLessThan(0.4)
})
