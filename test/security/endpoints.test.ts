import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { listEndpoints } from '#app.ts'
import { startGateway } from '#test/support/gateway.ts'
import { checkEndpoint, inOrder, isAdministrative } from './endpoint-checks.ts'
import type { Kind, KnownIds } from './endpoint-requests.ts'
import { canary, fillTenant, mergeIds } from './tenants.ts'

/**
 * Every endpoint for users, with requests made from its own declaration and against it. A failure prints
 * its seed: SLUICE_PROPERTY_SEED repeats it, SLUICE_PROPERTY_RUNS multiplies the runs.
 */
const runs: Readonly<Record<Kind, number>> = { valid: 6, spoilt: 12, broken: 5 }
const kinds: readonly Kind[] = ['valid', 'spoilt', 'broken']

const gateway = await startGateway()
const endpoints = listEndpoints(gateway.deps).filter((endpoint) => !isAdministrative(endpoint))
const statuses: Record<Kind, number[]> = { valid: [], spoilt: [], broken: [] }
let bearer: string
let ids: KnownIds

beforeAll(async () => {
  bearer = await gateway.token(['users'], 'mallory')
  const victim = await fillTenant(gateway, await gateway.token(['users'], 'alice'), canary)
  ids = mergeIds([victim, await fillTenant(gateway, bearer, 'mine')])
})
afterAll(() => gateway.stop())

describe.each(kinds)('%s requests', (kind) => {
  test.each(inOrder(endpoints))('%s', async (_, endpoint) => {
    const onStatus = (status: number) => statuses[kind].push(status)
    await checkEndpoint(endpoint, kind, runs[kind], { gateway, bearer, ids, canary, onStatus })
  })
})

test('some valid requests succeed, and most spoilt ones do not', () => {
  const successes = (kind: Kind) => statuses[kind].filter((status) => status < 300).length
  expect(successes('valid') / statuses.valid.length).toBeGreaterThan(0.2)
  expect(successes('spoilt') / statuses.spoilt.length).toBeLessThan(0.3)
})
