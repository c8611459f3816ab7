import type { RemoteFile, Say } from '#installer/sources/source.ts'

/**
 * Brings one file to `partPath`, over as many connections, cuts and tries as it takes, and answers
 * when all of its bytes are there, on the disk (fsync) and of the right hash. What is already there
 * from an earlier run, in this process or another, is kept and used: `<partPath>` holds the bytes,
 * `<partPath>.state` what is known of them. Both stay, however it ends: the next time, what is whole
 * is only hashed. Nobody else touches them meanwhile.
 *
 * Fails with an `AppError`: `insufficient_storage`; `upstream_invalid_answer` (codes
 * `hash_mismatch`, `length_mismatch`, `source_changed`); `source_auth_required`, `not_found`,
 * `permission_denied` (`host_not_allowed`); `unprocessable` (`file_too_large`, and `bad_source` for a
 * local path that is no file any more); `upstream_*` when the tries are used up.
 */
export type TransferFile = (file: RemoteFile, how: TransferOptions) => Promise<TransferredFile>

export type TransferOptions = {
  readonly partPath: string
  readonly signal: AbortSignal
  /** Bytes of this file that are on the disk and will not be fetched again; never fewer than before. */
  readonly onProgress: (bytesCompleted: number) => void
  /** All bytes are there and their hash is being taken. */
  readonly onVerifying: () => void
  readonly say: Say
}

export type TransferredFile = {
  readonly bytes: number
  readonly sha256: string
  /** Whether the source had said which hash it must have. */
  readonly isVerified: boolean
}
