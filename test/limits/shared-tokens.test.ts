import { afterEach, expect, test } from 'bun:test'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { createDice } from '#test/support/dice.ts'
import { eventually } from '#test/support/eventually.ts'
import { type CallSize, type LeasingProcess, startLeasingProcess } from './leasing-processes.ts'

/** Tokens per minute of one user over two processes, which are killed at any time. */

const leaseMs = 1_500
const userId = 'alice'
const directions = ['input', 'output'] as const
let place: TestPlace | null = null
const started: LeasingProcess[] = []

afterEach(async () => {
  for (const process of started.splice(0)) if (process.isAlive()) await process.kill()
  await place?.remove()
  place = null
})

test.skipIf(serverUrl === undefined).each([1, 2, 3])(
  'over random schedules with kills the tokens per minute hold (seed %i)',
  runSchedule,
)

type Call = {
  readonly id: string
  readonly process: LeasingProcess
  readonly reserved: CallSize
  readonly used: CallSize
  isRunning: boolean
}

const steps = 240
const killsAt = [80, 160]

/**
 * What was used is counted from outside: what calls reserved and, once they have ended, what they used,
 * which is up to twice as much. Calls of a killed process count with what they used until then: nothing.
 */
async function runSchedule(seed: number): Promise<void> {
  const { upTo } = createDice(seed)
  const slots = 3
  const sizeMax = { input: 40, output: 20 }
  const perMinute = { input: 2_000 + upTo(500), output: 1_000 + upTo(500) }
  const limits = {
    concurrent_generations: slots,
    input_tokens_per_minute: perMinute.input,
    output_tokens_per_minute: perMinute.output,
  }
  place = await createTestPlace()
  const { databaseUrl = '' } = place
  const start = async (values: object = limits) => {
    const process = await startLeasingProcess({ databaseUrl, limits: values, leaseMs })
    started.push(process)
    return process
  }
  const processes = [await start(), await start()]
  const startedAtMs = performance.now()
  const asked: Call[] = []
  const used = { input: 0, output: 0 }
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
    for (const direction of directions) used[direction] += call.used[direction]
  }
  const size = (factor: number): CallSize => ({
    input: 1 + upTo(factor * sizeMax.input),
    output: 1 + upTo(factor * sizeMax.output),
  })
  /** Beyond limit and refill: what the calls of each process used beyond their reservations at its end. */
  const excess = (1 + killsAt.length) * slots * 2
  const check = (step: number) => {
    const elapsedMs = performance.now() - startedAtMs
    const running = asked.filter(({ isRunning, process }) => isRunning && process.isAlive())
    expect(running.length, `seed ${seed}, step ${step}`).toBeLessThanOrEqual(slots)
    for (const direction of directions) {
      const reserved = running.reduce((sum, call) => sum + call.reserved[direction], 0)
      const bound = perMinute[direction] * (1 + elapsedMs / 60_000) + excess * sizeMax[direction]
      expect(used[direction] + reserved, `seed ${seed}, step ${step}`).toBeLessThanOrEqual(bound)
    }
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
    const id = `call-${seed}-${calls++}`
    const call = { id, process, reserved: size(1), used: size(2), isRunning: false }
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
  // The limits were reached, so they were tested.
  expect(refusals).toBeGreaterThan(0)
  expect(used.input + used.output).toBeGreaterThan((perMinute.input + perMinute.output) / 2)

  // No slot is left over: without any process, a new one gets all of them.
  for (const process of processes) await process.kill()
  const last = await start({ concurrent_generations: slots })
  for (let at = 0; at < slots; at++) {
    await eventually('a slot is free', () => last.admit(`last-${seed}-${at}-${calls++}`, userId))
  }
}
