import { afterEach, expect, test } from 'bun:test'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  configFile,
  type GatewayProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'

let place: TestPlace | null = null
afterEach(async () => {
  await stopProcesses()
  await place?.remove()
  place = null
})
const onServer = test.skipIf(serverUrl === undefined)

const input = { model: 'demo-fast', input: 'hi', store: false }

/** Two replicas of two workers each on one database. */
async function startReplicas(toml: string): Promise<readonly [GatewayProcess, GatewayProcess]> {
  place = await createTestPlace()
  const { databaseUrl = '', dataFolder } = place
  const environment = {
    DATABASE_URL: databaseUrl,
    SLUICE_CONFIG: configFile(toml),
    SLUICE_WORKERS: '2',
  }
  const start = () => startGatewayProcess({ dataFolder, environment })
  const replicas = [await start(), await start()] as const
  for (const replica of replicas) await replica.logged('listening', 2)
  return replicas
}

/** Each request on a connection of its own, so that workers share them. */
async function ask(replica: GatewayProcess, headers: Record<string, string> = {}) {
  const response = await replica.request('/v1/responses', {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close', ...headers },
    body: JSON.stringify(input),
  })
  await response.text()
  return response.status
}

onServer('four workers on one database admit the limit of a user together', async () => {
  const replicas = await startReplicas('[limits.default]\nrequests_per_minute = 12\n')
  const startedAtMs = performance.now()
  const statuses: number[] = []
  for (let at = 0; at < 30; at++) statuses.push(await ask(replicas[at % 2 === 0 ? 0 : 1]))
  const refill = ((performance.now() - startedAtMs) * 12) / 60_000
  const admitted = statuses.filter((status) => status === 200).length
  expect(admitted).toBeGreaterThanOrEqual(12)
  expect(admitted).toBeLessThanOrEqual(12 + refill)
  expect(new Set(statuses)).toEqual(new Set([200, 429]))
})

onServer('a limit that an administrator sets at one replica holds at the other', async () => {
  const [first, second] = await startReplicas('')
  const token = await signToken(['admins'])
  const setLimit = async (requests: number | null) => {
    const changed = await first.request('/v1/config', {
      method: 'PATCH',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ limits: { default: { requests_per_minute: requests } } }),
    })
    expect(changed.status).toBe(200)
  }
  expect(await ask(second)).toBe(200)
  await setLimit(0)
  await eventually('the limit holds', async () => (await ask(second)) === 429)
  await setLimit(null)
  await eventually('the limit is gone', async () => (await ask(second)) === 200)
})
