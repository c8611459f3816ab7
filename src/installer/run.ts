import type { AppError } from '#lib/errors.ts'
import type { Progress } from './progress.ts'
import type { DownloadRow } from './store.ts'

/** One try of a download. */
export type Run = {
  /** As it was when the try began. */
  readonly row: DownloadRow
  readonly progress: Progress
  /** Aborts when the process stops, and when the download is wanted otherwise. */
  readonly signal: AbortSignal
}

export type Outcome = 'completed' | 'unwanted' | { readonly failure: AppError }
