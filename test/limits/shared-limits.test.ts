import { afterEach, expect, test } from 'bun:test'
import type { LimitValues } from '#limits/config.ts'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { createDice } from '#test/support/dice.ts'
import { eventually } from '#test/support/eventually.ts'
import { type LeasingProcess, startLeasingProcess } from './leasing-processes.ts'

let place: TestPlace | null = null
const started: LeasingProcess[] = []

async function start(limits: LimitValues): Promise<LeasingProcess> {
  place ??= await createTestPlace()
  const { databaseUrl = '' } = place
  const process = await startLeasingProcess({ databaseUrl, limits })
  started.push(process)
  return process
}

afterEach(async () => {
  for (const process of started.splice(0)) if (process.isAlive()) await process.kill()
  await place?.remove()
  place = null
})

const onServer = test.skipIf(serverUrl === undefined)
let calls = 0
const newCall = () => `call-${calls++}`

onServer('two processes share the requests of a user', async () => {
  const limits = { requests_per_minute: 40 }
  const [a, b] = [await start(limits), await start(limits)]
  const startedAtMs = performance.now()
  let admitted = 0
  for (let at = 0; at < 60; at++) {
    if (await (at % 2 === 0 ? a : b).admit(newCall(), 'alice')) admitted++
  }
  const elapsedMs = performance.now() - startedAtMs
  expect(admitted).toBeLessThanOrEqual(40 + (elapsedMs * 40) / 60_000)
  // At most one reserve of a twentieth may lie unused in the other process.
  expect(admitted).toBeGreaterThanOrEqual(38)
})

onServer('a small limit is exact, whichever process is asked', async () => {
  const limits = { requests_per_minute: 5, concurrent_generations: 1 }
  const [a, b] = [await start(limits), await start(limits)]
  const outcomes: boolean[] = []
  for (const process of [a, b, b, a, b]) {
    const call = newCall()
    outcomes.push(await process.admit(call, 'alice'))
    process.end(call)
  }
  expect(outcomes).toEqual([true, true, true, true, true])
})

onServer('a slot that one process has is not given out by the other', async () => {
  const limits = { concurrent_generations: 2 }
  const [a, b] = [await start(limits), await start(limits)]
  const first = newCall()
  expect(await a.admit(first, 'alice')).toBe(true)
  expect(await b.admit(newCall(), 'alice')).toBe(true)
  expect(await b.admit(newCall(), 'alice')).toBe(false)
  expect(await a.admit(newCall(), 'alice')).toBe(false)
  expect(await a.admit(newCall(), 'bob')).toBe(true)
  a.end(first)
  await eventually('the slot returns', () => b.admit(newCall(), 'alice'))
})

onServer('the slots of a killed process are free when its lease has expired', async () => {
  const limits = { concurrent_generations: 3 }
  const [a, b] = [await start(limits), await start(limits)]
  for (let at = 0; at < 3; at++) expect(await a.admit(newCall(), 'alice')).toBe(true)
  expect(await b.admit(newCall(), 'alice')).toBe(false)
  await a.kill()
  for (let at = 0; at < 3; at++) {
    await eventually('a slot is free', () => b.admit(newCall(), 'alice'))
  }
  expect(await b.admit(newCall(), 'alice')).toBe(false)
})

onServer('a process that stops returns its slots and units at once', async () => {
  const limits = { requests_per_minute: 400, concurrent_generations: 2 }
  const [a, b] = [await start(limits), await start(limits)]
  for (let at = 0; at < 2; at++) {
    const call = newCall()
    expect(await a.admit(call, 'alice')).toBe(true)
    a.end(call)
  }
  await a.stop()
  expect(await b.admit(newCall(), 'alice')).toBe(true)
  expect(await b.admit(newCall(), 'alice')).toBe(true)
})

onServer('a suspended process does not use slots that others have been given', async () => {
  const limits = { concurrent_generations: 60 }
  const [a, b] = [await start(limits), await start(limits)]
  const call = newCall()
  // `a` now holds a reserve, too.
  expect(await a.admit(call, 'alice')).toBe(true)
  a.suspend()
  const given = new Set<string>()
  await eventually('all slots are given to the other', async () => {
    const next = newCall()
    if (await b.admit(next, 'alice')) given.add(next)
    return given.size === 60
  })
  a.resume()
  a.end(call)
  expect(await a.admit(newCall(), 'alice')).toBe(false)
})

onServer('over random schedules with kills the limits hold', async () => {
  for (let seed = 1; seed <= 3; seed++) await runSchedule(seed)
})

/**
 * Counts from outside: a call runs from when its admission is known until its end is sent, so never
 * more than in truth.
 */
async function runSchedule(seed: number): Promise<void> {
  const { upTo } = createDice(seed)
  const slots = 1 + upTo(6)
  const perMinute = 30 + upTo(200)
  const limits = { concurrent_generations: slots, requests_per_minute: perMinute }
  const users = [`u${seed}`, `v${seed}`]
  const processes = [await start(limits), await start(limits)]
  const startedAtMs = performance.now()
  type Call = { id: string; userId: string; process: LeasingProcess; isRunning: boolean }
  const asked: Call[] = []
  const admitted = new Map<string, number>()
  const settleDecisions = () => {
    for (const call of asked) {
      if (call.isRunning || !call.process.isAlive() || !call.process.outcome(call.id)) continue
      call.isRunning = true
      admitted.set(call.userId, (admitted.get(call.userId) ?? 0) + 1)
    }
  }
  const running = () => asked.filter(({ isRunning, process }) => isRunning && process.isAlive())
  for (let step = 0; step < 150; step++) {
    const at = upTo(2)
    const process = processes[at]
    if (process === undefined) continue
    const action = upTo(40)
    if (action === 0) {
      await process.kill()
      processes[at] = await start(limits)
    } else if (action < 18) {
      const userId = users[upTo(2)] ?? ''
      const call = { id: newCall(), userId, process, isRunning: false }
      asked.push(call)
      process.begin(call.id, userId)
    } else if (action < 30) {
      const calls = running()
      const call = calls[upTo(calls.length)]
      if (call !== undefined) {
        call.process.end(call.id)
        asked.splice(asked.indexOf(call), 1)
      }
    } else await Bun.sleep(upTo(40))
    settleDecisions()
    for (const userId of users) {
      const count = running().filter((call) => call.userId === userId).length
      expect(count, `seed ${seed}, step ${step}`).toBeLessThanOrEqual(slots)
    }
  }
  // On a busy machine the first decisions may come only now.
  for (const userId of users) {
    const [process] = processes
    const id = newCall()
    if (process !== undefined && !admitted.has(userId)) {
      asked.push({ id, userId, process, isRunning: false })
      process.begin(id, userId)
    }
    await eventually('a call of each user is admitted', () => {
      settleDecisions()
      return admitted.has(userId)
    })
  }
  const elapsedMs = performance.now() - startedAtMs
  for (const userId of users) {
    expect(admitted.get(userId) ?? 0).toBeLessThanOrEqual(perMinute * (1 + elapsedMs / 60_000))
  }
  // No slot is left over: without any process, a new one gets all of them.
  for (const process of processes) await process.kill()
  const last = await start({ concurrent_generations: slots })
  for (let at = 0; at < slots; at++) {
    await eventually('a slot is free', () => last.admit(newCall(), users[0] ?? ''))
  }
}
