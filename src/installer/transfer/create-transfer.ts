import { createOrigin, type OriginDeps, type OriginSettings } from '#installer/sources/origin.ts'
import type { RemoteFile } from '#installer/sources/source.ts'
import { AppError } from '#lib/errors.ts'
import { copyLocal } from './copy-local.ts'
import { fetchFile } from './fetch-file.ts'
import { openPart } from './part-file.ts'
import { createPrefixHash, type Digest } from './prefix-hash.ts'
import { createRetryBudget } from './retry-budget.ts'
import { type FetchSettings, hasKnownHash, startOver, type TransferFile } from './transfer.ts'

export type TransferSettings = OriginSettings &
  FetchSettings & { readonly localFolders: readonly string[] }

/** Downloads again after a wrong hash, this many times. */
const refetchesMax = 1

export function createTransfer(settings: TransferSettings, deps: OriginDeps): TransferFile {
  const origin = createOrigin(settings, deps)
  return async (file, { partPath, onProgress, onVerifying, signal, logLine }) => {
    const { bytes: expectedBytes, sha256, gitSha1, from } = file
    signal.throwIfAborted()
    let reported = -1
    const onSaved = (saved: number) => {
      if (saved <= reported) return
      reported = saved
      onProgress(saved)
    }
    const part = await openPart({ partPath, bytes: expectedBytes, sha256, onSaved })
    const gitBytes = gitSha1 === undefined ? null : expectedBytes
    const hash = createPrefixHash((offset, buffer) => part.read(offset, buffer), gitBytes)
    const shared = { file, settings, origin, part, hash, logLine, signal, ignoresValidators: false }
    const transfer = () => {
      if ('localPath' in from) {
        const { localFolders } = settings
        return copyLocal({ ...shared, ...from, localFolders, bytes: expectedBytes })
      }
      const retryBudget = createRetryBudget(settings, logLine)
      return fetchFile({ ...shared, url: new URL(from.url), retryBudget })
    }
    try {
      for (let refetches = 0; ; refetches++) {
        const bytes = await transfer()
        await part.save()
        onVerifying()
        const digest = await hash.digest(bytes)
        signal.throwIfAborted()
        if (matches(file, digest)) {
          return { bytes, sha256: digest.sha256, isVerified: hasKnownHash(file) }
        }
        await startOver(shared)
        if (refetches === refetchesMax) throw hashMismatch()
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

function hashMismatch(): AppError {
  return new AppError('upstream_invalid_answer', 'The hash of the file is wrong.', {
    code: 'hash_mismatch',
  })
}
