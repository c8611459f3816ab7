import { jitteredBackoffMs } from '#lib/backoff.ts'
import { sleep } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import type { InstallerContext } from './installer.ts'
import { bytesCompletedOf, type InstallAttempt } from './progress.ts'
import { isPermanent } from './sources/source.ts'

const backoffMaxMs = 60_000

/** Repeats a step of a download while a retry may help. Progress of `bytesCompleted` resets the count. */
export async function withRetries<T>(
  { settings }: Pick<InstallerContext, 'settings'>,
  { progress, signal }: Pick<InstallAttempt, 'progress' | 'signal'>,
  step: () => Promise<T>,
): Promise<T> {
  const bytesCompleted = () => bytesCompletedOf(progress.files())
  for (let attempts = 1; ; attempts++) {
    const before = bytesCompleted()
    try {
      return await step()
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof AppError) || isPermanent(error)) throw error
      if (bytesCompleted() > before) attempts = 1
      if (attempts >= settings.attemptsMax) throw error
      const pace = { firstMs: settings.backoffMs, maxMs: backoffMaxMs }
      const waitMs = Math.max(jitteredBackoffMs(attempts, pace), (error.retryAfterS ?? 0) * 1000)
      progress.logLine('warn', `${error.message} Retrying in ${Math.ceil(waitMs / 1000)} s.`)
      await sleep(waitMs, signal)
    }
  }
}
