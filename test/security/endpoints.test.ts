import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq, notInArray } from 'drizzle-orm'
import fc from 'fast-check'
import { listEndpoints } from '#app.ts'
import { batch } from '#db/schema/batches.ts'
import { fileIndex } from '#db/schema/retrieval.ts'
import { eventually } from '#test/support/eventually.ts'
import { startGateway } from '#test/support/gateway.ts'
import { openRecordedDatabase } from '#test/support/recorded-statements.ts'
import { checkEndpoint, inOrder, isAdministrative, send } from './endpoint-checks.ts'
import { type Kind, requestsFor, resourceOf } from './endpoint-requests.ts'
import { canary, fillTenant, mergeIds, tenantOptions } from './tenants.ts'

/**
 * Every endpoint for users, with requests made from its own declaration and against it. A failure prints
 * its seed: SLUICE_PROPERTY_SEED repeats it, SLUICE_PROPERTY_RUNS multiplies the runs.
 */
const runs: Readonly<Record<Kind, number>> = { valid: 6, spoilt: 12, broken: 5 }
const kinds: readonly Kind[] = ['valid', 'spoilt', 'broken']

const database = await openRecordedDatabase()
const gateway = await startGateway({ ...tenantOptions, database })
const endpoints = listEndpoints(gateway.deps).filter((endpoint) => !isAdministrative(endpoint))
const statuses: Record<Kind, number[]> = { valid: [], spoilt: [], broken: [] }
const bearer = await gateway.token(['users'], 'mallory')
const alice = await gateway.token(['users'], 'alice')
const theirs = await fillTenant(gateway, alice, canary)
const mine = await fillTenant(gateway, bearer, 'mine')
const ids = mergeIds([theirs, mine])

afterAll(async () => {
  await gateway.stop()
  await database.close()
})

describe('resources of another user and absent ones cost the same statements', () => {
  const named = endpoints.filter((endpoint) => theirs[resourceOf(endpoint) ?? ''] !== undefined)
  let lookUps = 0

  beforeAll(() => eventually('the files and batches are done', async () => (await inWork()) === 0))

  test.each(inOrder(named))('%s', async (_, endpoint) => {
    const id = theirs[resourceOf(endpoint) ?? ''] ?? ''
    const ask = async (asked: string, seed: number) => {
      const requests = requestsFor(endpoint, asked, mergeIds([mine]))
      const [request] = fc.sample(requests, { seed, numRuns: 1 })
      if (request === undefined) throw new Error('fast-check makes no request')
      return database.statementsOf(async () => {
        const { status, text } = await send(endpoint, request, { gateway, bearer })
        const compared = text.replaceAll(asked, 'ID').replaceAll(/req_\w{26}/g, 'REQUEST')
        return { status, text: compared }
      }, asked)
    }
    for (const seed of [1, 2, 3]) {
      const absent = id.slice(0, -12) + crypto.randomUUID().slice(-12)
      const denied = await ask(id, seed)
      expect(await ask(absent, seed)).toEqual(denied)
      lookUps += denied.statements.length
    }
  })

  test('and most of them are looked up', () => {
    expect(lookUps).toBeGreaterThan(named.length)
  })
})

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

async function inWork(): Promise<number> {
  const { drizzle } = database
  const files = await drizzle.$count(fileIndex, eq(fileIndex.state, 'pending'))
  return files + (await drizzle.$count(batch, notInArray(batch.status, ['completed', 'failed'])))
}
