import { repeat } from '#lib/repeat.ts'
import type { Log } from '#telemetry/log.ts'

type UpkeepDeps = {
  /** Returns how many batches it rolled up. */
  rollUp(): Promise<number>
  /** Returns how many rows it deleted. */
  sweep(now: Date): Promise<number>
  /** Null: the database does that by itself. */
  vacuum: (() => Promise<void>) | null
  log: Log
  now: () => Date
}

/** Queries read the records since then one by one. */
const rollUpEveryMs = 5_000
const sweepEveryMs = 60_000
/** The rest is left to the next run. */
const rollUpsMax = 200
/** Deleted rows after which the embedded database is vacuumed. */
const deletedPerVacuum = 2_000

/** Keeps the hourly sums current and deletes what has expired. */
export function startUpkeep({ rollUp, sweep, vacuum, log, now }: UpkeepDeps) {
  let deleted = 0
  async function rollUpAll() {
    for (let round = 0; round < rollUpsMax; round++) {
      const batches = await rollUp()
      deleted += batches
      if (batches === 0) return
    }
  }
  async function sweepAll() {
    deleted += await sweep(now())
    if (vacuum === null || deleted < deletedPerVacuum) return
    deleted = 0
    await vacuum()
  }
  const repeated = [
    repeat(rollUpAll, { everyMs: rollUpEveryMs, log, failed: 'usage rollup failed' }),
    repeat(sweepAll, { everyMs: sweepEveryMs, log, failed: 'sweep of usage records failed' }),
  ]
  return {
    async close() {
      await Promise.all(repeated.map((each) => each.stop()))
    },
  }
}
