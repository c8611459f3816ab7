import { afterEach, expect, test } from 'bun:test'
import type { Config } from '#config/schema.ts'
import { asRecord } from '#lib/json.ts'
import { systemPrincipal } from '#lib/request-context.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { json, stopUpstreams, upstreamThat } from '#test/support/generations.ts'

/** What the modules of a running gateway do with a changed configuration. */

const gateways: Gateway[] = []
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop()
  await stopUpstreams()
})

async function start(options: GatewayOptions) {
  const gateway = await startGateway(options)
  gateways.push(gateway)
  const { deps } = gateway
  const upstreams = (...changes: readonly Partial<Config['upstream'][number]>[]) => {
    const [first] = deps.config.upstream
    return changes.map((change) => ({ ...first, ...change })) as Config['upstream']
  }
  return {
    gateway,
    upstreams,
    change: (next: Partial<Config>) => deps.reload({ ...deps.config, ...next }),
    models: () => deps.catalogue.list(systemPrincipal).map(({ id }) => id),
    as: async (group: string, path: string) => {
      const authorization = `Bearer ${await gateway.token([group])}`
      return gateway.request(path, { headers: { authorization } })
    },
  }
}

const listing = (...names: string[]) => ({
  headers: json,
  body: JSON.stringify({ data: names.map((id) => ({ id })) }),
})

test('the list of an upstream is kept while its new server is unreachable, and replaced when it answers', async () => {
  const [first, second] = [await upstreamThat(listing('a')), await upstreamThat(listing('b'))]
  const { gateway, upstreams, change, models } = await start({ upstream: [{ url: first.baseUrl }] })
  await eventually('the first list is there', () => models().join() === 'a')
  await change({ upstream: upstreams({ url: 'http://127.0.0.1:1/v1' }) })
  await gateway.deps.catalogue.asked()
  expect(models()).toEqual(['a'])
  await change({ upstream: upstreams({ url: second.baseUrl }) })
  await gateway.deps.catalogue.asked()
  expect(models()).toEqual(['b'])
  await change({ upstream: upstreams({ url: second.baseUrl, models: ['c', 'd'] }) })
  expect(models()).toEqual(['c', 'd'])
  await change({ upstream: upstreams({ url: second.baseUrl, models: ['d'] }) })
  expect(models()).toEqual(['d'])
})

test('an upstream that stays is not asked for its models again', async () => {
  const first = await upstreamThat(listing('a'), listing('later'))
  const { gateway, upstreams, change, models } = await start({ upstream: [{ url: first.baseUrl }] })
  await eventually('the list is there', () => models().join() === 'a')
  await change({ upstream: upstreams({}, { name: 'other', models: ['x'] }) })
  await gateway.deps.catalogue.asked()
  expect(models()).toEqual(['a', 'x'])
})

test('groups of the file are overwritten and locked; one that it no longer names stays and can be edited', async () => {
  const editing = ['can_access_api', 'can_edit_config'] satisfies Config['groups'][string]
  const groups = { staff: ['can_access_api'], guests: editing } as Config['groups']
  const { gateway, change, as } = await start({ groups })
  const lockOf = async (name: string) => {
    const list = asRecord(await (await as('admins', '/v1/groups')).json())
    const data = Array.isArray(list['data']) ? list['data'].map(asRecord) : []
    return data.find((group) => group['name'] === name)?.['is_locked']
  }
  expect((await as('staff', '/v1/config/history')).status).toBe(403)
  await change({ groups: { staff: editing, new: editing } })
  for (const group of ['staff', 'new', 'guests']) {
    expect([group, (await as(group, '/v1/config/history')).status]).toEqual([group, 200])
  }
  expect([await lockOf('staff'), await lockOf('new'), await lockOf('guests')]).toEqual([
    true,
    true,
    false,
  ])
  await change({ groups: { staff: [], new: editing } })
  expect((await as('staff', '/v1/config/history')).status).toBe(403)
  expect(gateway.deps.config.groups).toEqual({ staff: [], new: editing })
})

test('a change that one module rejects changes no other module', async () => {
  const { gateway, upstreams, change, models } = await start({
    upstream: [{ url: 'http://127.0.0.1:1/v1', models: ['a'] }],
  })
  const before = gateway.deps.config.limits
  const rejected = change({
    // The database refuses this name.
    groups: { 'no\u0000name': ['can_access_api'] },
    upstream: upstreams({ models: ['b'] }),
    limits: { ...before, toolsMax: 1 },
  })
  await expect(rejected).rejects.toThrow()
  expect(models()).toEqual(['a'])
  expect(gateway.deps.config.limits).toBe(before)
})

test('speech engines and their names in the model list follow', async () => {
  const { gateway, change } = await start({ engine: [{ name: 'one', kind: 'demo' }] })
  const names = async () => {
    const list = asRecord(await (await gateway.request('/v1/models')).json())
    const data = Array.isArray(list['data']) ? list['data'].map(asRecord) : []
    return data.filter(({ mode }) => mode === 'transcribe').map(({ id }) => id)
  }
  expect(await names()).toContain('one')
  const [engine] = gateway.deps.config.engine
  await change({ engine: [{ ...engine, name: 'two' }] as Config['engine'] })
  expect(await names()).toContain('two')
  expect(await names()).not.toContain('one')
  expect((await gateway.request('/v1/models/one')).status).toBe(404)
})
