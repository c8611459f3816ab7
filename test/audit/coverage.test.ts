import { afterAll, beforeAll, expect, test } from 'bun:test'
import { listEndpoints } from '#app.ts'
import { userIdOf } from '#auth/principal.ts'
import { type Administration, type Body, startAdministration } from './administrative-changes.ts'
import { absent, changes, nextName } from './audited-requests.ts'

/**
 * Every endpoint that changes something by an administrative permission writes one entry of the audit
 * log, and none where it refuses. A new endpoint without a case fails the first test.
 */

let world: Administration
beforeAll(async () => {
  world = await startAdministration()
})
afterAll(() => world.stop())

/** They change nothing. */
const previews = ['POST /v1/branding/theme/preview']
/** Of what needs more than this gateway. */
const elsewhere = [
  // test/process/reload.test.ts
  'POST /v1/config/reload',
  // test/installer/runtimes.test.ts
  'POST /v1/model-installer/runtimes/:name/install',
]

const isChange = ({ method }: { method: string }) => method !== 'GET' && method !== 'HEAD'

test('every endpoint with an administrative permission has a case', () => {
  const places = listEndpoints(world.gateway.deps)
    .filter(isChange)
    .filter(({ permission }) => permission !== 'public' && permission !== 'can_access_api')
    .map(({ method, path }) => `${method} ${path}`)
  expect(places.length).toBeGreaterThan(35)
  const known = [...Object.keys(changes), ...previews, ...elsewhere]
  expect(places.filter((place) => !known.includes(place))).toEqual([])
})

type Entry = {
  readonly action: string
  readonly actor: unknown
  readonly request_id: string
  readonly changes: { readonly before: unknown; readonly after: unknown }
}

async function entries(): Promise<Entry[]> {
  const { data } = await world.prepare('GET /v1/audit-log?limit=100')
  return data as Entry[]
}

async function writtenBy(work: () => Promise<unknown>): Promise<Entry[]> {
  const [last] = await entries()
  await work()
  const now = await entries()
  const known = now.findIndex(({ request_id: id }) => id === last?.request_id)
  return known === -1 ? now : now.slice(0, known)
}

async function adminKey(): Promise<{ id: string; key: string }> {
  const { body } = await world.send(await world.tokenOf('root'), 'POST /v1/api-keys', {
    name: nextName(),
  })
  return { id: String(body['id']), key: String(body['key']) }
}

test.each(Object.entries(changes))('%s writes one entry', async (_, change) => {
  const [operation, body] = await change.request(world)
  const key = change.needsToken ? null : await adminKey()
  const bearer = key?.key ?? (await world.tokenOf('root'))
  let requestId = ''
  const written = await writtenBy(async () => {
    const sent = await world.send(bearer, operation, body)
    expect(sent.status, JSON.stringify(sent.body)).toBeLessThan(300)
    requestId = sent.requestId
  })
  expect(written).toHaveLength(1)
  expect(written[0]).toMatchObject({
    action: change.action,
    actor: { id: userIdOf('root'), api_key_id: key?.id ?? null },
    request_id: requestId,
  })
  const { before, after } = written[0]?.changes ?? {}
  expect(before ?? after).not.toBeNull()
  if (/\.(update|rollback|pause|resume|cancel)$/.test(change.action)) {
    expect([before, after]).not.toContain(null)
    expect(before).not.toEqual(after)
  }
})

test.each(Object.entries(changes))('%s writes nothing where it refuses', async (place, change) => {
  const [operation, body] = change.refused ?? [
    placeOfNothing(place),
    change.needsToken ? {} : undefined,
  ]
  const written = await writtenBy(async () => {
    for (const [subject, group] of [
      ['nobody', 'users'],
      ...(change.isNeverInvalid ? [] : [['root', 'admins']]),
    ] as const) {
      const bearer = await world.tokenOf(subject ?? '', group)
      const refused = await world.send(bearer, operation, body)
      expect(refused.status, JSON.stringify(refused.body)).toBeWithin(400, 500)
    }
  })
  expect(written).toEqual([])
})

/** The endpoint with the id of nothing. */
function placeOfNothing(endpoint: string): string {
  return endpoint.replace(/ of another user$/, '').replace(/:\w+/g, absent)
}

test('a dry run, and a change to the same values, write nothing', async () => {
  const root = await world.tokenOf('root')
  await world.prepare('PATCH /v1/config', { retrieval_k: 5 })
  await world.prepare('PUT /v1/branding/theme', { product_name: 'Same' })
  await world.prepare('PATCH /v1/translations/fr', { navigation: { home: 'Accueil' } })
  const unchanged: [string, Body?][] = [
    ['PATCH /v1/config?dry_run=true', { retrieval_k: 9 }],
    ['PATCH /v1/config', { retrieval_k: 5 }],
    ['PUT /v1/branding/theme', { product_name: 'Same' }],
    ['PATCH /v1/translations/fr', { navigation: { home: 'Accueil' } }],
    ['POST /v1/translations/reset', { language: 'it' }],
    ['POST /v1/branding/theme/preview', { product_name: 'Other' }],
  ]
  const written = await writtenBy(async () => {
    for (const [operation, body] of unchanged) {
      expect((await world.send(root, operation, body)).status, operation).toBe(200)
    }
  })
  expect(written).toEqual([])
})
