import type { FileHooks } from '#files/files.ts'
import { type PeriodicTask, repeat } from '#lib/repeat.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import type { Storage } from '#storage/storage.ts'
import type { Log } from '#telemetry/log.ts'
import { createSweepStore, type SweepDatabase } from './store.ts'

export type FileSweepDeps = {
  database: SweepDatabase
  storage: Pick<Storage, 'remove'>
  settings: CurrentSettings
  hooks: Pick<FileHooks, 'changed'>
  log: Pick<Log, 'warn'>
  now: () => Date
}

const sweepEveryMs = 60_000
/** Searching for unused content reads the whole table, and so does vacuuming. */
const sweepsPerFullScan = 10
/** The rest waits for the next sweep. */
const stepsMax = 500

/** Periodically deletes expired files, old trash and content that no file uses. */
export function startFileSweep(deps: FileSweepDeps): PeriodicTask {
  const sweep = createFileSweep(deps)
  return repeat(sweep, { everyMs: sweepEveryMs, log: deps.log, failed: 'file sweep failed' })
}

/** Returns a function that runs one sweep. */
export function createFileSweep({ database, storage, settings, hooks, now }: FileSweepDeps) {
  const store = createSweepStore(database)
  let sweeps = 0
  return async (): Promise<void> => {
    const time = now()
    const retentionMs = settings.current().files.trash_seconds * 1_000
    const retainedSince = new Date(time.getTime() - retentionMs)
    await repeatSteps(() => store.dropExpired(hooks, time))
    const isComplete = await repeatSteps(() => store.dropTrashed(hooks, retainedSince))
    // Deleting a folder cascades to its files, whose content must have been dropped before.
    const namesKeptSince = new Date(retainedSince.getTime() - retentionMs)
    if (isComplete) await repeatSteps(() => store.dropNodes(namesKeptSince))
    if (sweeps++ % sweepsPerFullScan > 0) return
    await repeatSteps(() => store.dropContents(time, storage.remove))
    await store.vacuum()
  }
}

/** Returns whether nothing is left to do. */
async function repeatSteps(step: () => Promise<boolean>): Promise<boolean> {
  for (let steps = 0; steps < stepsMax; steps++) {
    if (!(await step())) return true
  }
  return false
}
