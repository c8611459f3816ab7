import { afterAll, beforeAll, expect, test } from 'bun:test'
import { userIdOf } from '#auth/principal.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** `GET /v1/limits`, with the embedded database and with a server. */

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway({
    limits: {
      default: { requests_per_minute: 10, concurrent_generations: 3 },
      group: { staff: { requests_per_minute: 4 } },
      user: { [userIdOf('cleo')]: { requests_per_minute: 2 } },
      model: { 'demo-fast': { requests_per_minute: 100 } },
    },
    budgets: {
      default: { tokens_per_day: 1_000, soft_tokens_per_day: 1 },
      user: {},
      group: { staff: { cost_per_month: 5 } },
      key: {},
    },
    prices: { 'demo-fast': { input_per_million: 1_000, output_per_million: 1_000 } },
    groups: { staff: ['can_access_api'] },
  })
})
afterAll(() => gateway.stop())

type Use = Record<'scope' | 'id' | 'name' | 'kind' | 'limit', string> & {
  max: number
  used: number
  share: number
  hard: boolean
  resets_at: string | null
  set_by: { scope: string; id: string | null }
}

async function usesOf(authorization: string, query = ''): Promise<Use[]> {
  const headers = { authorization: `Bearer ${authorization}` }
  const response = await gateway.request(`/v1/limits${query}`, { headers })
  expect(response.status).toBe(200)
  const { data } = (await response.json()) as { data: Use[] }
  return data
}

async function call(authorization: string): Promise<void> {
  const response = await gateway.request('/v1/responses', {
    method: 'POST',
    headers: { authorization: `Bearer ${authorization}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo-fast', input: 'hi', store: false }),
  })
  expect(response.status).toBe(200)
}

const find = (uses: readonly Use[], scope: string, id: string, limit: string) =>
  uses.find((use) => use.scope === scope && use.id === id && use.limit === limit)

test('administrators see whose limits are used most, by what sets them', async () => {
  const [ada, bob, cleo] = await Promise.all([
    gateway.token(['users', 'staff'], 'ada'),
    gateway.token(['users'], 'bob'),
    gateway.token(['users'], 'cleo'),
  ])
  for (const caller of [ada, bob, cleo]) await call(caller)
  const admin = await gateway.token(['admins'], 'root')
  let uses: Use[] = []
  await eventually('the use is written', async () => {
    uses = await usesOf(admin)
    const budgets = uses.filter(({ kind, share }) => kind === 'budget' && share > 0)
    return new Set(budgets.map(({ id }) => id)).size === 4
  })
  const requests = 'requests_per_minute'
  expect(find(uses, 'user', userIdOf('ada'), requests)).toMatchObject({
    name: 'ada',
    max: 4,
    used: 1,
    hard: true,
    set_by: { scope: 'group', id: 'staff' },
  })
  expect(find(uses, 'user', userIdOf('bob'), requests)).toMatchObject({
    max: 10,
    set_by: { scope: 'default', id: null },
  })
  expect(find(uses, 'user', userIdOf('cleo'), requests)).toMatchObject({
    max: 2,
    set_by: { scope: 'user', id: userIdOf('cleo') },
  })
  expect(find(uses, 'model', 'demo-fast', requests)?.max).toBe(100)
  const soft = find(uses, 'user', userIdOf('bob'), 'soft_tokens_per_day')
  expect(soft).toMatchObject({ kind: 'budget', hard: false })
  expect(soft?.share).toBeGreaterThan(1)
  const cost = find(uses, 'group', 'staff', 'cost_per_month')
  expect(cost).toMatchObject({ max: 5, resets_at: expect.stringMatching(/-01T00:00:00\.000Z$/) })
  expect(cost?.used).toBeGreaterThan(0)
  const shares = uses.map(({ share }) => share)
  expect(shares).toEqual(shares.toSorted((one, other) => other - one))
  expect((await usesOf(admin, '?limit=2')).length).toBe(2)
  const models = await usesOf(admin, '?scope=model')
  expect([...new Set(models.map(({ scope }) => scope))]).toEqual(['model'])
})

test('callers see only their own, unused ones and those of their key included', async () => {
  const dan = await gateway.token(['users', 'staff'], 'dan')
  const uses = await usesOf(dan)
  expect([...new Set(uses.map(({ scope, id }) => `${scope} ${id}`))].toSorted()).toEqual([
    'group staff',
    `user ${userIdOf('dan')}`,
  ])
  expect(find(uses, 'user', userIdOf('dan'), 'concurrent_generations')).toMatchObject({
    max: 3,
    used: 0,
    resets_at: null,
  })
  expect(await usesOf(dan, `?scope=user&id=${userIdOf('ada')}`)).toEqual([])
  const created = await gateway.request('/v1/api-keys', {
    method: 'POST',
    headers: { authorization: `Bearer ${dan}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'robot', limits: { requests_per_minute: 7 } }),
  })
  const { id, key } = (await created.json()) as { id: string; key: string }
  expect(find(await usesOf(key), 'key', id, 'requests_per_minute')).toMatchObject({
    name: 'robot',
    max: 7,
    used: 0,
  })
})

test('an id needs its scope', async () => {
  const response = await gateway.request('/v1/limits?id=x')
  expect(response.status).toBe(422)
})
