import type { ChangeNotifier } from '#db/change-notifier.ts'
import { AppError } from '#lib/errors.ts'
import { type Log, redact } from '#telemetry/log.ts'
import type { DownloadStatus } from './installer.ts'
import { createRateMeter } from './rate.ts'
import type { Say } from './sources/source.ts'
import {
  appendLines,
  changeDownload,
  type DownloadChange,
  type DownloadRow,
  type DownloadStore,
  type FileState,
  type NewLine,
} from './store.ts'

/** How far a download is, as the process that works on it sees it; written down now and then. */
export type Progress = {
  readonly say: Say
  readonly files: () => readonly FileState[]
  /** The files that it consists of, with what is already known of them. */
  setFiles(
    files: readonly FileState[],
    known: Pick<DownloadChange, 'revision' | 'bytesTotal'>,
  ): void
  setStatus(status: DownloadStatus): void
  /** Bytes of a file go up alone; what was there when it began counts for no speed. */
  setFile(path: string, change: Partial<FileState>): void
  /** Everything is written down; throws where it cannot be. */
  flush(): Promise<void>
  /** Writes nothing any more. */
  close(): Promise<void>
}

export type ProgressDeps = {
  store: DownloadStore
  notifier: Pick<ChangeNotifier, 'notify'>
  settings: { readonly logLinesMax: number }
  log: Pick<Log, 'debug'>
  now: () => Date
}

type Pending = { -readonly [Field in keyof DownloadChange]: DownloadChange[Field] }

/** Twice a second. */
const writeEveryMs = 500
const lineCharsMax = 1_000

export function createProgress(deps: ProgressDeps, row: DownloadRow): Progress {
  const rate = createRateMeter()
  const begun = new Set<string>()
  let files = new Map(row.files.map((file) => [file.path, file]))
  let change: Pending = {}
  let hasNewFiles = false
  let lines: NewLine[] = []
  let writing: Promise<void> = Promise.resolve()
  let isClosed = false

  const isDirty = () => hasNewFiles || lines.length > 0 || Object.keys(change).length > 0
  const timer = setInterval(() => {
    if (isDirty()) flush().catch((error) => deps.log.debug('progress is not written', { error }))
  }, writeEveryMs)

  function flush(): Promise<void> {
    const written = writing.catch(() => {}).then(write)
    writing = written
    return written
  }
  async function write(): Promise<void> {
    if (isClosed || !isDirty()) return
    const [wasChange, wasLines] = [hasNewFiles ? { ...change, ...standing() } : change, lines]
    change = {}
    lines = []
    hasNewFiles = false
    try {
      const bytesPerSecond = rate.perSecond()
      await save(deps, row.id, { change: { ...wasChange, bytesPerSecond }, lines: wasLines })
    } catch (error) {
      change = { ...wasChange, ...change }
      lines = [...wasLines, ...lines].slice(-deps.settings.logLinesMax)
      throw error
    }
  }
  function standing() {
    const states = [...files.values()]
    return {
      files: states,
      bytesCompleted: states.reduce((sum, { bytesCompleted }) => sum + bytesCompleted, 0),
    }
  }

  return {
    say(level, message) {
      const text = redact(message).replaceAll('\0', '').slice(0, lineCharsMax)
      lines.push({ at: deps.now(), level, message: text })
      lines = lines.slice(-deps.settings.logLinesMax)
    },
    files: () => [...files.values()],
    setFiles(given, known) {
      files = new Map(given.map((file) => [file.path, file]))
      Object.assign(change, known)
      hasNewFiles = true
    },
    setStatus(status) {
      change.status = status
    },
    setFile(path, { bytesCompleted = 0, ...given }) {
      const file = files.get(path)
      if (file === undefined) throw new AppError('internal_error', 'There is no such file.')
      const bytes = Math.max(file.bytesCompleted, bytesCompleted)
      if (begun.has(path)) rate.add(bytes - file.bytesCompleted)
      if (bytesCompleted > 0) begun.add(path)
      files.set(path, { ...file, ...given, bytesCompleted: bytes })
      hasNewFiles = true
    },
    flush,
    async close() {
      clearInterval(timer)
      await writing.catch(() => {})
      isClosed = true
    },
  }
}

async function save(
  { store, notifier, settings, now }: ProgressDeps,
  id: string,
  { change, lines }: { change: DownloadChange; lines: readonly NewLine[] },
): Promise<void> {
  await store.transact(async (transaction) => {
    if (!(await changeDownload(transaction, id, change, now()))) return
    await appendLines(transaction, id, { lines, linesMax: settings.logLinesMax })
    await notifier.notify(transaction, id)
  })
}
