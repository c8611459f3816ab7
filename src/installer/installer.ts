import type { InstalledModel, InstalledModels } from './library.ts'
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

export function isTerminal(status: DownloadStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** The installation or verification of a model. */
export type Download = {
  readonly id: string
  readonly task: 'install' | 'verify'
  readonly model: string
  /** Readable: see `describeSource`. */
  readonly source: string
  readonly revision: string | null
  readonly status: DownloadStatus
  /** Null: unknown. */
  readonly bytesTotal: number | null
  /** Never decreases. */
  readonly bytesCompleted: number
  /** Null: no data arrives. */
  readonly bytesPerSecond: number | null
  readonly etaSeconds: number | null
  readonly files: readonly DownloadFile[]
  /** How often a worker has started it. */
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

/** Shown to users, like the message of an `AppError`. */
export type DownloadError = { readonly code: string; readonly message: string }

export type DownloadLine = {
  /** 1, 2, 3 …; the oldest lines are dropped beyond the limit. */
  readonly seq: number
  readonly at: Date
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
}

export type InstallRequest = {
  /** The name to install the model under. */
  readonly model: string
  readonly source: Source
  /** Whether files are accepted that can run code when loaded. */
  readonly allowsUnsafe: boolean
}

export type StartResult =
  | { readonly kind: 'started' | 'active'; readonly download: Download }
  | { readonly kind: 'installed'; readonly model: InstalledModel }

export type DownloadAction = 'cancel' | 'pause' | 'resume'

/** The current state of a download and its new log lines. */
export type DownloadUpdate = {
  readonly download: Download
  readonly lines: readonly DownloadLine[]
}

/** Methods that take an id throw `not_found` for an unknown one. */
type Downloads = {
  /**
   * Resolves the source, then queues the download for any worker. Idempotent: the same request
   * returns the active download, or the installed model if it is current.
   *
   * Throws the errors of `ResolveSource`, with the code `resolve_failed` if the source is
   * unreachable; `conflict` (`download_active`, `name_taken`, `too_many_downloads`);
   * `insufficient_storage`.
   */
  start(userId: string, request: InstallRequest, signal: AbortSignal): Promise<StartResult>
  /** Active downloads, oldest first. */
  list(): Promise<readonly Download[]>
  /** Finds a finished download too, until it expires. */
  find(id: string): Promise<Download>
  /** Empty for a finished download. */
  lines(id: string, page: LinePage): Promise<readonly DownloadLine[]>
  /** The current state, then every change; at least one update per heartbeat; ends when finished. */
  follow(id: string, afterSeq: number, signal: AbortSignal): Promise<AsyncIterator<DownloadUpdate>>
  /**
   * Resolves when the action has taken effect, or after two seconds. Idempotent. A cancelled download
   * keeps its data for the next download of the model. Throws `conflict` (`download_terminal`).
   */
  act(id: string, action: DownloadAction): Promise<Download>
  /** Cancels the download unless it is finished, and deletes its data. */
  discard(id: string): Promise<Download>
}

export type LinePage = { readonly afterSeq: number; readonly limit: number }

type ModelLibrary = InstalledModels & {
  /** Sentences that describe the current users of a model. */
  usesOf(name: string): Promise<readonly string[]>
  /** Returns the freed bytes. Throws `not_found`, `conflict` (`model_in_use`). */
  remove(name: string): Promise<number>
  /** Starts to verify all files. Throws `not_found`, `conflict` (`download_active`). */
  verify(userId: string, name: string): Promise<Download>
  usage(): Promise<StorageUsage>
}

/** In bytes. */
export type StorageUsage = {
  /** Of the disk. */
  readonly total: number
  /** Available to this program. */
  readonly free: number
  /** By installed models. */
  readonly used: number
  /** By partially downloaded files. */
  readonly partials: number
}

export type Installer = {
  readonly downloads: Downloads
  readonly models: ModelLibrary
  close(): Promise<void>
}
