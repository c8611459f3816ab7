import { AppError } from '#lib/errors.ts'
import { redact } from '#telemetry/log.ts'
import type { DownloadStatus, FileState, InstallerContext } from './installer.ts'
import {
  appendLines,
  type Download,
  type DownloadChange,
  type NewLine,
  updateDownload,
} from './store.ts'

/** One attempt of a worker at a download. */
export type DownloadAttempt = InstallAttempt & {
  /** The row at the start of the attempt. */
  readonly row: Download
  readonly progress: ReturnType<typeof createProgress>
}

/** What an installation reads and reports, with or without a database. */
export type InstallAttempt = {
  readonly row: Pick<Download, 'id' | 'model' | 'files' | 'status' | 'revision'>
  readonly progress: Pick<
    ReturnType<typeof createProgress>,
    'logLine' | 'files' | 'setFiles' | 'setFile' | 'setStatus' | 'flush'
  >
  /** Aborts when the worker stops and when the download is paused or cancelled. */
  readonly signal: AbortSignal
}

type Pending = { -readonly [Field in keyof DownloadChange]: DownloadChange[Field] }

const writeEveryMs = 500
const lineCharsMax = 1_000

/** The progress of an attempt, written to the database twice a second. */
export function createProgress(deps: InstallerContext, row: Download) {
  const { store, notifier, settings, now } = deps
  const rate = createRateMeter()
  const started = new Set<string>()
  const states = createFileStates(row.files)
  let change: Pending = {}
  let hasNewFiles = false
  let lines: NewLine[] = []
  let writing: Promise<void> = Promise.resolve()
  let isClosed = false

  const isDirty = () => hasNewFiles || lines.length > 0 || Object.keys(change).length > 0
  const timer = setInterval(() => {
    if (isDirty()) flush().catch((error) => deps.log.debug('progress write failed', { error }))
  }, writeEveryMs)

  /** Writes pending changes; throws if that fails. */
  function flush(): Promise<void> {
    const written = writing.catch(() => {}).then(write)
    writing = written
    return written
  }
  async function write(): Promise<void> {
    if (isClosed || !isDirty()) return
    const written = hasNewFiles ? { ...change, ...fileTotals() } : change
    const writtenLines = lines
    change = {}
    lines = []
    hasNewFiles = false
    try {
      const bytesPerSecond = rate.perSecond()
      await store.transact(async (transaction) => {
        const whole = { ...written, bytesPerSecond }
        if (!(await updateDownload(transaction, row.id, whole, now()))) return
        const linesMax = settings.logLinesMax
        await appendLines(transaction, row.id, { lines: writtenLines, linesMax })
        await notifier.notify(transaction, row.id)
      })
    } catch (error) {
      change = { ...written, ...change }
      lines = [...writtenLines, ...lines].slice(-settings.logLinesMax)
      throw error
    }
  }
  function fileTotals() {
    const files = states.list()
    return { files, bytesCompleted: bytesCompletedOf(files) }
  }

  return {
    logLine(level: NewLine['level'], message: string): void {
      const text = redact(message).replaceAll('\0', '').slice(0, lineCharsMax)
      lines.push({ at: now(), level, message: text })
      lines = lines.slice(-settings.logLinesMax)
    },
    files: states.list,
    setFiles(
      given: readonly FileState[],
      known: Pick<DownloadChange, 'revision' | 'bytesTotal'>,
    ): void {
      states.replace(given)
      Object.assign(change, known)
      hasNewFiles = true
    },
    setStatus(status: DownloadStatus): void {
      change.status = status
    },
    /** The bytes of a file never decrease. The first value of a file does not count for the rate. */
    setFile(path: string, given: Partial<FileState>): void {
      const added = states.change(path, given)
      if (started.has(path)) rate.add(added)
      if ((given.bytesCompleted ?? 0) > 0) started.add(path)
      hasNewFiles = true
    },
    flush,
    /** Stops all writes. */
    async close(): Promise<void> {
      clearInterval(timer)
      await writing.catch(() => {})
      isClosed = true
    },
  }
}

/** The states of the files of a download. The bytes of a file never decrease. */
export function createFileStates(given: readonly FileState[]) {
  let files = new Map(given.map((file) => [file.path, file]))
  return {
    list: (): readonly FileState[] => [...files.values()],
    replace(next: readonly FileState[]): void {
      files = new Map(next.map((file) => [file.path, file]))
    },
    /** Returns the bytes that were added. */
    change(path: string, { bytesCompleted = 0, ...changed }: Partial<FileState>): number {
      const file = files.get(path)
      if (file === undefined) throw new AppError('internal_error', 'There is no such file.')
      const bytes = Math.max(file.bytesCompleted, bytesCompleted)
      files.set(path, { ...file, ...changed, bytesCompleted: bytes })
      return bytes - file.bytesCompleted
    },
  }
}

export function bytesCompletedOf(files: readonly FileState[]): number {
  return files.reduce((sum, { bytesCompleted }) => sum + bytesCompleted, 0)
}

const rateWindowMs = 10_000
/** Bytes within one interval form one sample. */
const rateSampleMs = 250
/** Shorter measurements are too noisy. */
const rateSpanMinMs = 500

/** Bytes per second over a sliding window; null if none arrived in it. */
export function createRateMeter(nowMs: () => number = () => performance.now()) {
  const startedAt = nowMs()
  let samples: { at: number; bytes: number }[] = []
  return {
    add(bytes: number): void {
      const at = nowMs()
      const last = samples.at(-1)
      if (last !== undefined && at - last.at < rateSampleMs) last.bytes += bytes
      else samples.push({ at, bytes })
      samples = samples.filter((sample) => at - sample.at <= rateWindowMs)
    },
    perSecond(): number | null {
      const at = nowMs()
      const recent = samples.filter((sample) => at - sample.at <= rateWindowMs)
      const bytes = recent.reduce((sum, sample) => sum + sample.bytes, 0)
      const spanMs = Math.max(Math.min(at - startedAt, rateWindowMs), rateSpanMinMs)
      return bytes === 0 ? null : Math.round((bytes / spanMs) * 1000)
    },
  }
}
