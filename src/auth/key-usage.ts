import type { Log } from '#telemetry/log.ts'
import { lastUseGrainMs } from './key-store.ts'
import type { AuthStore } from './store.ts'

/** Notes when keys are used, a minute apart and off the path of the requests. */
export type KeyUsage = {
  note(keyId: string): void
  /** Writes what was noted. */
  close(): Promise<void>
}

/** Notes of this time go into one write. */
const flushMs = 1_000
/** Beyond this, the time of a key's last use is not noted until the next flush. */
const keysMax = 10_000

export function createKeyUsage(options: {
  store: Pick<AuthStore, 'markUsed'>
  now: () => Date
  log: Pick<Log, 'warn'>
}): KeyUsage {
  /** When a key was noted last, so that a busy key costs one write a minute. */
  const notedAt = new Map<string, number>()
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
      options.log.warn('The last use of API keys could not be noted.', { error })
    }
  }
  return {
    note(keyId) {
      const now = performance.now()
      const last = notedAt.get(keyId)
      if ((last !== undefined && now - last < lastUseGrainMs) || due.size >= keysMax) return
      if (notedAt.size >= keysMax) notedAt.clear()
      notedAt.set(keyId, now)
      due.add(keyId)
      timer ??= setTimeout(flush, flushMs)
    },
    close: flush,
  }
}
