import { orDiskFull } from './disk-full.ts'

/** Makes durable what was changed, one time after the other. */
export type Saver = {
  /** There is something to be saved. */
  changed(): void
  /** In the background, as soon as the last time is long enough ago. */
  saveInTime(): void
  save(): Promise<void>
  /** The first failure that there was, also in the background. */
  throwFailure(): void
}

/** How often what was written is made durable and written down. */
const saveEveryMs = 1_000

export function createSaver(write: () => Promise<void>): Saver {
  let isSaved = true
  let savedAt = performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  let last: Promise<void> = Promise.resolve()
  let isQueued = false
  let failure: unknown

  async function saveNow() {
    isQueued = false
    if (isSaved) return
    // What changes from now on is for the next time.
    isSaved = true
    try {
      await write()
    } catch (error) {
      isSaved = false
      failure ??= orDiskFull(error)
    }
    savedAt = performance.now()
  }
  function save(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (!isQueued) last = last.then(saveNow)
    isQueued = true
    return last
  }
  return {
    changed() {
      isSaved = false
    },
    saveInTime() {
      const restMs = saveEveryMs - (performance.now() - savedAt)
      timer ??= setTimeout(() => void save(), Math.max(restMs, 0))
    },
    save,
    throwFailure() {
      if (failure !== undefined) throw failure
    },
  }
}
