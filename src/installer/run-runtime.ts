import { messageOf } from '#lib/error-message.ts'
import { AppError } from '#lib/errors.ts'
import { repeat } from '#lib/repeat.ts'
import { redact } from '#telemetry/log.ts'
import { type InstallerContext, waitingFile } from './installer.ts'
import { diskBytes, requireDiskSpace } from './layout.ts'
import type { DownloadAttempt } from './progress.ts'
import { type RuntimeTask, runtimeNotFound } from './runtime.ts'

const pollMs = 1_000
const reasonCharsMax = 500

/**
 * Installs a runtime with the package manager, whose cache is the partial data of the download: what it
 * holds is the progress, and an interrupted download continues with it.
 */
export async function runRuntime(
  deps: InstallerContext,
  { row, progress, signal }: DownloadAttempt,
  { runtime: name }: RuntimeTask,
): Promise<void> {
  const { runtimes, layout, settings, log } = deps
  const runtime = runtimes.list().find((one) => one.name === name)
  if (runtime === undefined) throw runtimeNotFound(name)
  const { downloadBytes: bytes, packages } = runtime
  const path = runtime.package
  const partial = layout.partial(row.model)
  await requireDiskSpace(layout, { bytes, partial, reserveBytes: settings.reserveBytes })
  progress.setFiles([{ ...waitingFile(path, bytes), status: 'downloading' }], { bytesTotal: bytes })
  progress.setStatus('downloading')
  progress.logLine('info', `Installing ${packages.join(', ')} into ${runtime.folder}.`)
  const watching = repeat(
    async () => {
      const bytesCompleted = Math.min(bytes, await diskBytes(partial))
      progress.setFile(path, { bytesCompleted })
    },
    { everyMs: pollMs, log, failed: 'runtime progress unknown' },
  )
  try {
    await runtimes.install(runtime, {
      cacheFolder: partial,
      signal,
      onLine: (line) => progress.logLine('info', line),
    })
  } catch (error) {
    signal.throwIfAborted()
    const reason = messageOf(error)
    progress.logLine('error', reason)
    const message = redact(reason).slice(0, reasonCharsMax)
    throw new AppError('upstream_refused', message, { code: 'install_failed', cause: error })
  } finally {
    await watching.stop()
  }
  progress.setFile(path, { status: 'completed', bytesCompleted: bytes })
  progress.logLine('info', `${runtime.package} ${runtime.version} is installed.`)
  await layout.remove(partial)
}
