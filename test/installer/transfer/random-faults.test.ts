import { expect, test } from 'bun:test'
import { createDice } from '#test/support/dice.ts'
import type { Fault } from '#test/support/origin-answers.ts'
import {
  type Bench,
  contentOf,
  holds,
  isMonotone,
  openBench,
  remoteFile,
  sha256Of,
} from './transfer-fixture.ts'

const schedules = 60
const faultsMax = 14
const bytesMax = 400_000

/** The errors with which a transfer may end. */
const failures = new Set([
  ...['hash_mismatch', 'length_mismatch', 'source_changed', 'server_error'],
  ...['upstream_invalid_answer', 'upstream_overloaded', 'upstream_error', 'upstream_refused'],
  ...['upstream_gap_timeout', 'upstream_first_event_timeout', 'upstream_unreachable'],
])

type Dice = ReturnType<typeof createDice>

function anyFault(dice: Dice, bytes: number): Fault {
  const upTo = (count: number) => dice.upTo(count + 1)
  const faults: (() => Fault)[] = [
    () => ({ kind: 'cut', afterBytes: upTo(bytes) }),
    () => ({ kind: 'cut', afterBytes: upTo(70_000) }),
    () => ({ kind: 'stall', afterBytes: upTo(70_000) - 1 }),
    () => ({ kind: 'dropped' }),
    () => ({ kind: 'whole' }),
    () => ({ kind: 'flipped', at: upTo(bytes) }),
    () => ({ kind: 'excess', bytes: upTo(10) }),
    () => ({ kind: 'short', bytes: upTo(70_000) }),
    () => ({ kind: 'chunked' }),
    () => ({ kind: 'gzip' }),
    () => ({ kind: 'status', status: [416, 429, 500, 503][dice.upTo(4)] ?? 500 }),
    () => ({ kind: 'headers', headers: { etag: `"${upTo(3)}"` } }),
    () => ({
      kind: 'headers',
      headers: { 'content-range': `bytes ${upTo(9)}-${upTo(bytes)}/${bytes}` },
    }),
  ]
  return (faults[dice.upTo(faults.length)] ?? (() => ({ kind: 'dropped' })))()
}

async function runSchedule(bench: Bench, seed: number) {
  const dice = createDice(seed)
  const content = contentOf(1 + dice.upTo(bytesMax), seed)
  const path = `/${seed}.gguf`
  const url = bench.origin.put(path, content, { hasRanges: dice.upTo(5) > 0 })
  const faults = Array.from({ length: dice.upTo(faultsMax + 1) }, () =>
    anyFault(dice, content.length),
  )
  bench.origin.misbehave(path, ...faults)
  const isSized = dice.upTo(3) > 0
  const file = remoteFile(url, content, isSized ? {} : { bytes: null })
  const settings = { stallMs: 40, answerMs: 60, rangesMax: 1 + dice.upTo(4), attemptsMax: 6 }
  const transferred = await bench.transfer(file, { settings })
  return { content, faults, isSized, transferred }
}

test('random faults end in the right bytes or in a known error', async () => {
  const bench = await openBench()
  let arrived = 0
  for (let seed = 1; seed <= schedules; seed++) {
    const { content, faults, isSized, transferred } = await runSchedule(bench, seed)
    const { file, failure, progress, partPath } = transferred
    const label = `seed ${seed}: ${JSON.stringify(faults)} ended with ${failure}`
    expect(isMonotone(progress), label).toBe(true)
    if (file === null) {
      expect(failures, label).toContain(failure)
      continue
    }
    arrived++
    expect(file, label).toEqual({
      bytes: content.length,
      sha256: sha256Of(content),
      isVerified: true,
    })
    expect(holds(partPath, content), label).toBe(true)
    // A wrong length of a file of unknown length may exceed it.
    const last = progress.at(-1) ?? 0
    expect(isSized ? last : Math.min(last, content.length), label).toBe(content.length)
  }
  // Most transfers must survive, or the test shows little.
  expect(arrived).toBeGreaterThan(schedules / 2)
  await bench.close()
})
