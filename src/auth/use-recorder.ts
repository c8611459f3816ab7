import type { Log } from '#telemetry/log.ts'
import { lastUseGrainMs } from './key-use-store.ts'

/** The interval of writes. */
const flushMs = 1_000
/** Further ones are not recorded until the next flush. */
const usedMax = 10_000

/** Records the last use of keys or sessions, at most once a minute each, in the background. */
export function createUseRecorder(options: {
  markUsed: (ids: readonly string[], usedAt: Date) => Promise<void>
  now: () => Date
  log: Pick<Log, 'warn'>
  /** For the log. */
  what: string
}) {
  const { markUsed, now, log, what } = options
  const recordedAt = new Map<string, number>()
  const due = new Set<string>()
  let timer: Timer | undefined

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const ids = [...due]
    due.clear()
    if (ids.length === 0) return
    try {
      await markUsed(ids, now())
    } catch (error) {
      log.warn('last use not written', { what, error })
    }
  }
  return {
    record(id: string): void {
      const usedAt = performance.now()
      const last = recordedAt.get(id)
      if ((last !== undefined && usedAt - last < lastUseGrainMs) || due.size >= usedMax) return
      if (recordedAt.size >= usedMax) recordedAt.clear()
      recordedAt.set(id, usedAt)
      due.add(id)
      timer ??= setTimeout(flush, flushMs)
    },
    /** Writes pending records. */
    flush,
  }
}
