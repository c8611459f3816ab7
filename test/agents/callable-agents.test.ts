import { expect, test } from 'bun:test'
import type { Agent } from '#agents/agents.ts'
import { createCallableAgents } from '#agents/callable-agents.ts'
import { AppError } from '#lib/errors.ts'
import { sampleAgent } from './sample-agent.ts'

/** The agents of model lists and of requests are read from the database once, until one changes. */

const ann = { userId: 'ann', groups: ['users'] }

/** A store that counts its reads, and the notifications of another replica. */
async function startCache(read: () => Promise<readonly Agent[]> = async () => [sampleAgent]) {
  let reads = 0
  let notify = () => {}
  const count = () => {
    reads++
    return read()
  }
  const store = {
    find: async () => (await count())[0],
    list: async () => ({ agents: [...(await count())], hasMore: false }),
    async listen(onAnyChange: () => void) {
      notify = onAnyChange
    },
  }
  const agents = await createCallableAgents(store)
  return { agents, reads: () => reads, notify: () => notify() }
}

type Cache = Awaited<ReturnType<typeof startCache>>
const reading: [string, (cache: Cache) => Promise<unknown>][] = [
  ['a list', ({ agents }) => agents.list(ann)],
  ['an agent', ({ agents }) => agents.find(ann, sampleAgent.id)],
]

test.each(reading)('%s is read once', async (_, read) => {
  const cache = await startCache()
  await Promise.all([read(cache), read(cache)])
  expect(await read(cache)).toBeDefined()
  expect(cache.reads()).toBe(1)
})

test.each(reading)('%s is read for each principal', async (_, read) => {
  const cache = await startCache()
  await read(cache)
  await cache.agents.list({ userId: 'ann', groups: ['users', 'staff'] })
  await cache.agents.list({ userId: 'bob', groups: ['users'] })
  expect(cache.reads()).toBe(3)
})

test.each(reading)('%s is read again after any change', async (_, read) => {
  const cache = await startCache()
  await read(cache)
  const changes = [cache.notify, () => cache.agents.invalidate()]
  for (const [index, change] of changes.entries()) {
    change()
    await read(cache)
    await read(cache)
    expect(cache.reads()).toBe(index + 2)
  }
})

test.each(reading)('%s that was read before a change is not kept', async (_, read) => {
  const found = Promise.withResolvers<readonly Agent[]>()
  const cache = await startCache(() => found.promise)
  const before = read(cache)
  cache.notify()
  found.resolve([sampleAgent])
  await before
  await read(cache)
  expect(cache.reads()).toBe(2)
})

test('a failure, an unknown agent and a long list are not kept', async () => {
  const failing = await startCache(() => Promise.reject(new AppError('service_unavailable', 'x')))
  await expect(failing.agents.list(ann)).rejects.toThrow('x')
  await expect(failing.agents.list(ann)).rejects.toThrow('x')
  expect(failing.reads()).toBe(2)

  const empty = await startCache(async () => [])
  expect(await empty.agents.find(ann, sampleAgent.id)).toBeUndefined()
  await empty.agents.find(ann, sampleAgent.id)
  expect(empty.reads()).toBe(2)

  const long = await startCache(async () => Array.from({ length: 101 }, () => sampleAgent))
  expect(await long.agents.list(ann)).toHaveLength(101)
  await long.agents.list(ann)
  expect(long.reads()).toBe(2)
})
