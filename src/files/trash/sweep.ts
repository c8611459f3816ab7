import type { Config } from '#config/schema.ts'
import type { FileHooks } from '#files/files.ts'
import { type Repeated, repeat } from '#lib/repeat.ts'
import type { Storage } from '#storage/storage.ts'
import type { Log } from '#telemetry/log.ts'
import { createSweepStore, type SweptDatabase } from './sweep-store.ts'

export type FileSweepDeps = {
  database: SweptDatabase
  storage: Pick<Storage, 'remove'>
  settings: Pick<Config['files'], 'trashS'>
  hooks: Pick<FileHooks, 'changed'>
  log: Pick<Log, 'warn'>
  now: () => Date
}

const sweepEveryMs = 60_000
/** Looking for contents that nobody names is looking at all of them; so is tidying. */
const sweepsPerLookAtAll = 10
/** What is left after so many steps of a kind waits for the next sweep. */
const stepsMax = 500

/** Empties the trash, and the storage of what no file names any more, again and again. */
export function startFileSweep(deps: FileSweepDeps): Repeated {
  const sweep = createFileSweep(deps)
  const { log } = deps
  return repeat(sweep, { everyMs: sweepEveryMs, log, failed: 'old files cannot be deleted' })
}

/** One sweep. */
export function createFileSweep({ database, storage, settings, hooks, now }: FileSweepDeps) {
  const store = createSweepStore(database)
  let sweeps = 0
  return async (): Promise<void> => {
    const time = now()
    const trashMs = settings.trashS * 1_000
    const keptFrom = new Date(time.getTime() - trashMs)
    await untilDone(() => store.dropExpired(hooks, time))
    const isEmpty = await untilDone(() => store.dropTrashed(hooks, keptFrom))
    // A folder takes what is in it along; by then the contents of that are told and gone.
    const toldFrom = new Date(keptFrom.getTime() - trashMs)
    if (isEmpty) await untilDone(() => store.dropNodes(toldFrom))
    if (sweeps++ % sweepsPerLookAtAll > 0) return
    await untilDone(() => store.dropContents(time, storage.remove))
    await store.tidy()
  }
}

/** Says whether nothing is left. */
async function untilDone(step: () => Promise<boolean>): Promise<boolean> {
  for (let steps = 0; steps < stepsMax; steps++) {
    if (!(await step())) return true
  }
  return false
}
