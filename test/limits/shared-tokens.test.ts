import { afterEach, expect, test } from 'bun:test'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { createDice } from '#test/support/dice.ts'
import { eventually } from '#test/support/eventually.ts'
import { type CallSize, type LeasingProcess, startLeasingProcess } from './leasing-processes.ts'

/** Tokens per minute of one user over two processes, which are killed at any time. */

const userId = 'alice'
type Direction = 'input' | 'output'
let place: TestPlace | null = null
const started: LeasingProcess[] = []

afterEach(async () => {
  for (const process of started.splice(0)) if (process.isAlive()) await process.kill()
  await place?.remove()
  place = null
})

test.skipIf(serverUrl === undefined).each([
  ['input', 1],
  ['input', 2],
  ['output', 1],
  ['output', 2],
] as const)('over random schedules with kills the %s tokens per minute hold (seed %i)', runSchedule)

type Call = {
  readonly id: string
  readonly process: LeasingProcess
  readonly reserved: CallSize
  readonly used: CallSize
  isRunning: boolean
}

const steps = 240
/** A busy machine admits less: leases of killed processes are lost for a while. */
const reachedShare = 0.7
const reservedMax = 5
const usedMax = 20
const killsAt = [80, 160]

/**
 * What was used is counted from outside: what calls reserved and, once they have ended, what they used,
 * which is mostly more. Calls of a killed process count with what they used until then: nothing.
 */
async function runSchedule(direction: Direction, seed: number): Promise<void> {
  const { upTo } = createDice(seed)
  const slots = 3
  const perMinute = 300 + upTo(100)
  const limits = { concurrent_generations: slots, [`${direction}_tokens_per_minute`]: perMinute }
  place = await createTestPlace()
  const { databaseUrl = '' } = place
  const start = async (values: object = limits) => {
    const process = await startLeasingProcess({ databaseUrl, limits: values })
    started.push(process)
    return process
  }
  const processes = [await start(), await start()]
  const startedAtMs = performance.now()
  const asked: Call[] = []
  let used = 0
  let calls = 0
  let refusals = 0
  const settleDecisions = () => {
    for (const call of [...asked]) {
      const isAdmitted = call.process.outcome(call.id)
      if (isAdmitted === false) {
        refusals++
        asked.splice(asked.indexOf(call), 1)
      } else if (isAdmitted === true && call.process.isAlive()) call.isRunning = true
    }
  }
  const end = (call: Call) => {
    call.process.end(call.id, call.used)
    asked.splice(asked.indexOf(call), 1)
    used += call.used[direction]
  }
  const size = (tokensMax: number): CallSize => ({
    input: 1 + upTo(tokensMax),
    output: 1 + upTo(tokensMax),
  })
  /** Beyond limit and refill: what the calls of each process used beyond their reservations at its end. */
  const excess = (1 + killsAt.length) * slots * usedMax
  const check = (step: number) => {
    const elapsedMs = performance.now() - startedAtMs
    const running = asked.filter(({ isRunning, process }) => isRunning && process.isAlive())
    expect(running.length, `seed ${seed}, step ${step}`).toBeLessThanOrEqual(slots)
    const reserved = running.reduce((sum, call) => sum + call.reserved[direction], 0)
    const bound = perMinute * (1 + elapsedMs / 60_000) + excess
    expect(used + reserved, `seed ${seed}, step ${step}`).toBeLessThanOrEqual(bound)
  }

  for (let step = 0; step < steps; step++) {
    const at = upTo(2)
    const process = processes[at]
    if (process === undefined) continue
    if (killsAt.includes(step)) {
      await process.kill()
      for (const call of asked.filter((one) => one.process === process)) {
        asked.splice(asked.indexOf(call), 1)
      }
      processes[at] = await start()
      continue
    }
    const id = `${direction}-${seed}-${calls++}`
    const call = { id, process, reserved: size(reservedMax), used: size(usedMax), isRunning: false }
    asked.push(call)
    process.begin(id, userId, call.reserved)
    await eventually('it is decided', () => process.outcome(id) !== undefined)
    settleDecisions()
    check(step)
    const running = asked.filter(({ isRunning }) => isRunning)
    while (running.length > upTo(slots)) end(running.splice(upTo(running.length), 1)[0] ?? call)
    check(step)
  }
  for (const call of [...asked]) if (call.isRunning) end(call)
  check(steps)
  // The limit was reached, so it was tested.
  expect(refusals).toBeGreaterThan(0)
  expect(used).toBeGreaterThan(perMinute * reachedShare)

  // No slot is left over: without any process, a new one gets all of them.
  for (const process of processes) await process.kill()
  const last = await start({ concurrent_generations: slots })
  for (let at = 0; at < slots; at++) {
    await eventually('a slot is free', () => last.admit(`last-${seed}-${at}-${calls++}`, userId))
  }
}
