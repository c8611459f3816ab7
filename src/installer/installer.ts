import type { ChangeNotifier } from '#db/change-notifier.ts'
import type { Transport } from '#inference/transport.ts'
import type { Upstream } from '#inference/upstream.ts'
import type { Jobs } from '#jobs/jobs.ts'
import type { Log } from '#telemetry/log.ts'
import type { InstallerSettings } from './config.ts'
import type { Layout } from './layout.ts'
import type { InstalledModel, Library, ModelUses } from './library.ts'
import type { Runtimes } from './runtime.ts'
import type { ResolveSource, Source } from './sources/source.ts'
import type { Download, DownloadStore } from './store.ts'
import type { TransferFile } from './transfer/transfer.ts'

/** The parts of the installer, as all of its functions use them. */
export type InstallerContext = {
  readonly settings: InstallerSettings
  readonly layout: Layout
  readonly library: Library
  readonly store: DownloadStore
  readonly notifier: ChangeNotifier
  readonly jobs: Pick<Jobs, 'add' | 'process'>
  readonly resolve: ResolveSource
  readonly transferFile: TransferFile
  readonly transport: Transport
  /** A configured upstream. */
  readonly findUpstream: (name: string) => Upstream | undefined
  readonly uses: ModelUses
  readonly runtimes: Runtimes
  /** Notifies all workers that the installed models have changed. */
  notifyModelsChanged(): Promise<void>
  readonly log: Pick<Log, 'debug' | 'info' | 'warn'>
  readonly now: () => Date
}

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

export type FileState = {
  readonly path: string
  /** The file name of the partial data. */
  readonly part: string | null
  readonly bytesTotal: number | null
  readonly bytesCompleted: number
  readonly status: 'waiting' | 'downloading' | 'verifying' | 'completed'
  /** Of a complete file. */
  readonly sha256: string | null
  readonly isVerified: boolean
}

export function waitingFile(path: string, bytesTotal: number | null): FileState {
  const status = 'waiting'
  return {
    path,
    part: null,
    bytesTotal,
    bytesCompleted: 0,
    status,
    sha256: null,
    isVerified: false,
  }
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
