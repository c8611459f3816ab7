import type { Log } from '#telemetry/log.ts'
import { lastUseGrainMs } from './key-store.ts'
import type { AuthStore } from './store.ts'

/** Records the last use of keys, at most once a minute each, in the background. */
export type KeyUsage = {
  record(keyId: string): void
  /** Writes pending records. */
  close(): Promise<void>
}

/** The interval of writes. */
const flushMs = 1_000
/** Further keys are not recorded until the next flush. */
const keysMax = 10_000

export function createKeyUsage(options: {
  store: Pick<AuthStore, 'markUsed'>
  now: () => Date
  log: Pick<Log, 'warn'>
}): KeyUsage {
  const recordedAt = new Map<string, number>()
  const due = new Set<string>()
  let timer: ReturnType<typeof setTimeout> | undefined

  async function flush() {
    clearTimeout(timer)
    timer = undefined
    const keyIds = [...due]
    due.clear()
    if (keyIds.length === 0) return
    try {
      await options.store.markUsed(keyIds, options.now())
    } catch (error) {
      options.log.warn('API key usage write failed', { error })
    }
  }
  return {
    record(keyId) {
      const now = performance.now()
      const last = recordedAt.get(keyId)
      if ((last !== undefined && now - last < lastUseGrainMs) || due.size >= keysMax) return
      if (recordedAt.size >= keysMax) recordedAt.clear()
      recordedAt.set(keyId, now)
      due.add(keyId)
      timer ??= setTimeout(flush, flushMs)
    },
    close: flush,
  }
}
