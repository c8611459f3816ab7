import type { InstalledModel, InstalledModels } from './installed.ts'
import type { Source } from './sources/source.ts'

export const downloadStatuses = [
  'queued',
  'resolving',
  'downloading',
  'verifying',
  'committing',
  'paused',
  'completed',
  'failed',
  'cancelled',
] as const

export type DownloadStatus = (typeof downloadStatuses)[number]

/** Whether nothing will change any more. */
export function isTerminal(status: DownloadStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** A model on its way to this machine, or one whose files are being looked over. */
export type Download = {
  readonly id: string
  readonly task: 'install' | 'verify'
  readonly model: string
  /** For people: see `describeSource`. */
  readonly source: string
  readonly revision: string | null
  readonly status: DownloadStatus
  /** Null while a size is not known. */
  readonly bytesTotal: number | null
  /** Never less than it was. */
  readonly bytesCompleted: number
  /** Null where nothing is under way. */
  readonly bytesPerSecond: number | null
  readonly etaSeconds: number | null
  readonly files: readonly DownloadFile[]
  /** How often a process took it up. */
  readonly attempts: number
  readonly error: DownloadError | null
  readonly startedBy: string
  readonly startedAt: Date
  readonly updatedAt: Date
  readonly finishedAt: Date | null
}

export type DownloadFile = {
  readonly path: string
  readonly bytesTotal: number | null
  readonly bytesCompleted: number
  readonly status: 'waiting' | 'downloading' | 'verifying' | 'completed'
}

/** Public, as the message of an `AppError` is. */
export type DownloadError = { readonly code: string; readonly message: string }

export type DownloadLine = {
  /** 1, 2, 3 …; the oldest ones go when there are too many. */
  readonly seq: number
  readonly at: Date
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
}

export type InstallWish = {
  /** The name under which it will be installed. */
  readonly model: string
  readonly source: Source
  /** Whether files may be taken that can run code when they are loaded. */
  readonly allowsUnsafe: boolean
}

export type Started =
  | { readonly kind: 'started' | 'under way'; readonly download: Download }
  | { readonly kind: 'installed'; readonly model: InstalledModel }

export type DownloadAction = 'cancel' | 'pause' | 'resume'

/** What has changed since it was told last; the download as it is now. */
export type DownloadNews = {
  readonly download: Download
  readonly lines: readonly DownloadLine[]
}

/** Every method that names a download throws `not_found` where there is none. */
export type Downloads = {
  /**
   * Asks the source what it has, and then leaves the rest to whichever process takes the work up.
   * The same wish while it is under way, or when it is installed as it stands, changes nothing.
   *
   * Throws what `Resolve` does, with the code `resolve_failed` where the source cannot be reached;
   * `conflict` (`download_active`, `name_taken`, `too_many_downloads`), `insufficient_storage`.
   */
  start(userId: string, wish: InstallWish, signal: AbortSignal): Promise<Started>
  /** Those that are not over, the oldest first. */
  list(): Promise<readonly Download[]>
  /** Also one that is over, for as long as it is kept. */
  find(id: string): Promise<Download>
  /** Empty once the download is over. */
  lines(id: string, page: LinePage): Promise<readonly DownloadLine[]>
  /** At once, with each change, at least once in each heartbeat, and last when it is over. */
  follow(id: string, afterSeq: number, signal: AbortSignal): Promise<AsyncIterator<DownloadNews>>
  /**
   * Answers when it has come about, or after a moment; what changes nothing is no error. A cancelled
   * download keeps what it has brought for the next one of the same model. Throws `conflict` of code
   * `download_terminal`.
   */
  act(id: string, action: DownloadAction): Promise<Download>
  /** Cancels it unless it is over, and removes what it has brought. */
  discard(id: string): Promise<Download>
}

export type LinePage = { readonly afterSeq: number; readonly limit: number }

export type ModelLibrary = InstalledModels & {
  /** Who uses it, as sentences. */
  usesOf(name: string): Promise<readonly string[]>
  /** Gives the bytes that it took. Throws `not_found`, and `conflict` of code `model_in_use`. */
  remove(name: string): Promise<number>
  /** Reads all of its files again. Throws `not_found`, and `conflict` of code `download_active`. */
  verify(userId: string, name: string): Promise<Download>
  usage(): Promise<StorageUsage>
}

/** In bytes. */
export type StorageUsage = {
  /** Of the whole disk. */
  readonly total: number
  /** What we may still write. */
  readonly free: number
  /** By installed models. */
  readonly used: number
  /** By what downloads have brought so far. */
  readonly partials: number
}

export type Installer = {
  readonly downloads: Downloads
  readonly models: ModelLibrary
  close(): Promise<void>
}
