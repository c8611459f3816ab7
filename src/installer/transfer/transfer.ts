import type { Origin } from '#installer/sources/origin.ts'
import type { LogLine, RemoteFile } from '#installer/sources/source.ts'
import type { PartFile } from './part-file.ts'
import type { PrefixHash } from './prefix-hash.ts'
import type { RetryBudget } from './retry-budget.ts'

/**
 * Downloads one file to `partPath` over several connections, with retries. Resolves when all bytes
 * are on the disk (fsync) and their hash is verified. Resumes from what an earlier run left:
 * `<partPath>` holds the bytes, `<partPath>.state` describes them. Both stay after a failure and
 * after success. The caller must not use them meanwhile.
 *
 * Throws `insufficient_storage`; `upstream_invalid_answer` (`hash_mismatch`, `length_mismatch`,
 * `source_changed`); `source_auth_required`, `not_found`, `permission_denied` (`host_not_allowed`);
 * `unprocessable` (`file_too_large`; `bad_source` for a local path that is no longer a file);
 * `upstream_*` after the last retry.
 */
export type TransferFile = (file: RemoteFile, options: TransferOptions) => Promise<TransferredFile>

type TransferOptions = {
  readonly partPath: string
  readonly signal: AbortSignal
  /** Bytes that are on the disk and will not be downloaded again; never decreases. */
  readonly onProgress: (bytesCompleted: number) => void
  /** All bytes are written; the hash is being computed. */
  readonly onVerifying: () => void
  readonly logLine: LogLine
}

export type TransferredFile = {
  readonly bytes: number
  readonly sha256: string
  /** Whether the source published the hash. */
  readonly isVerified: boolean
}

/** From the `installer` section of the configuration. */
export type FetchSettings = {
  readonly rangesMax: number
  readonly rangeBytes: number
  readonly attemptsMax: number
  readonly backoffMs: number
  readonly answerMs: number
  readonly stallMs: number
  readonly fileBytesMax: number
}

/** The download of one file; shared by its connections. */
export type FileDownload = {
  readonly url: URL
  readonly file: RemoteFile
  readonly settings: FetchSettings
  readonly origin: Origin
  readonly part: PartFile
  readonly hash: PrefixHash
  readonly retryBudget: RetryBudget
  /** Validators of the source are unreliable; the hash decides. */
  readonly ignoresValidators: boolean
  readonly logLine: LogLine
  readonly signal: AbortSignal
}

/** Whether a published hash will verify the bytes. */
export function hasKnownHash({ sha256, gitSha1, bytes }: RemoteFile): boolean {
  return sha256 !== null || (gitSha1 !== undefined && bytes !== null)
}

/** Discards the bytes written so far. */
export async function startOver({
  part,
  hash,
  file,
}: Pick<FileDownload, 'part' | 'hash' | 'file'>): Promise<void> {
  hash.restart()
  await part.restart({ validator: null, bytes: file.bytes })
}
