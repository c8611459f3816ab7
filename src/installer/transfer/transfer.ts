import type { FileHandle } from 'node:fs/promises'
import type { InstallerSettings } from '#installer/config.ts'
import { openLocal } from '#installer/sources/local.ts'
import { createOrigin, type Origin, type OriginDeps } from '#installer/sources/origin.ts'
import { hasKnownHash, type LogLine, type RemoteFile } from '#installer/sources/source.ts'
import { AppError } from '#lib/errors.ts'
import { fetchFile } from './fetch-file.ts'
import { openPart, type PartFile, type Version } from './part-file.ts'
import type { Digest } from './prefix-hash.ts'
import { createRetryBudget, type RetryBudget } from './retry-budget.ts'

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

/** The download of one file; shared by its connections. */
export type FileDownload = {
  readonly url: URL
  readonly file: RemoteFile
  readonly settings: InstallerSettings
  readonly origin: Origin
  readonly part: PartFile
  readonly retryBudget: RetryBudget
  /** Validators of the source are unreliable; the hash decides. */
  readonly ignoresValidators: boolean
  readonly logLine: LogLine
  readonly signal: AbortSignal
}

/** Downloads again after a wrong hash, this many times. */
const refetchesMax = 1

export function createTransfer(settings: InstallerSettings, deps: OriginDeps): TransferFile {
  const origin = createOrigin(settings, deps)
  return async (file, { partPath, onProgress, onVerifying, signal, logLine }) => {
    const { from } = file
    signal.throwIfAborted()
    const part = await openPart({ partPath, file, onSaved: onProgress })
    const transfer = () => {
      if ('localPath' in from) {
        const { localFolders } = settings
        return copyLocal(part, { ...from, localFolders, bytes: file.bytes, signal })
      }
      const retryBudget = createRetryBudget(settings, logLine)
      const shared = { file, settings, origin, part, logLine, signal, ignoresValidators: false }
      return fetchFile({ ...shared, url: new URL(from.url), retryBudget })
    }
    try {
      for (let refetches = 0; ; refetches++) {
        const bytes = await transfer()
        await part.save()
        onVerifying()
        const digest = await part.digest(bytes)
        signal.throwIfAborted()
        if (matches(file, digest)) {
          return { bytes, sha256: digest.sha256, isVerified: hasKnownHash(file) }
        }
        await part.restart()
        if (refetches === refetchesMax)
          throw invalid('The hash of the file is wrong.', 'hash_mismatch')
        logLine('warn', 'The hash of the file is wrong; downloading it again.')
      }
    } finally {
      await part.close()
    }
  }
}

function matches({ sha256, gitSha1 }: RemoteFile, digest: Digest): boolean {
  if (sha256 !== null) return digest.sha256 === sha256
  return gitSha1 === undefined || digest.gitSha1 === null || digest.gitSha1 === gitSha1
}

const chunkBytes = 1024 * 1024

/** Copies a file of this machine, resuming an earlier run; returns its length. */
async function copyLocal(
  part: PartFile,
  from: {
    localPath: string
    localFolders: readonly string[]
    /** The length when the source was resolved. */
    bytes: number | null
    signal: AbortSignal
  },
): Promise<number> {
  const file = await openLocal(from.localPath, from.localFolders)
  try {
    const version = await versionOf(file)
    const { bytes } = version
    if (from.bytes !== null && from.bytes !== bytes) throw changed()
    if (part.version().validator !== version.validator) await part.restart(version)
    const buffer = new Uint8Array(chunkBytes)
    for (let at = part.prefixEnd(); at < bytes; ) {
      from.signal.throwIfAborted()
      const { bytesRead } = await file.read(buffer, 0, Math.min(chunkBytes, bytes - at), at)
      if (bytesRead === 0) throw changed()
      await part.write(at, [buffer.subarray(0, bytesRead)])
      at += bytesRead
    }
    if ((await versionOf(file)).validator !== version.validator) throw changed()
    return bytes
  } finally {
    await file.close()
  }
}

async function versionOf(file: FileHandle): Promise<Version & { bytes: number }> {
  const { size, mtimeMs, ino } = await file.stat()
  return { validator: `${ino} ${size} ${mtimeMs}`, bytes: size }
}

function changed(): AppError {
  return invalid('The file changed while it was copied.', 'source_changed')
}

function invalid(message: string, code: string): AppError {
  return new AppError('upstream_invalid_answer', message, { code })
}
