import { createOrigin, type OriginSettings, type OriginWorld } from '#installer/sources/origin.ts'
import type { RemoteFile } from '#installer/sources/source.ts'
import { AppError } from '#lib/errors.ts'
import { copyLocal } from './copy-local.ts'
import { fetchFile } from './fetch-file.ts'
import { type FetchJob, type FetchSettings, isVouchedFor, startOver } from './job.ts'
import { openPart, type PartFile } from './part-file.ts'
import { createPatience } from './patience.ts'
import { createPrefixHash, type Digest, type PrefixHash } from './prefix-hash.ts'
import type { TransferFile, TransferOptions, TransferredFile } from './transfer.ts'

export type TransferSettings = OriginSettings &
  FetchSettings & { readonly localFolders: readonly string[] }

/** What is wrong twice is not fetched a third time. */
const refetchesMax = 1

export function createTransfer(settings: TransferSettings, world: OriginWorld): TransferFile {
  const origin = createOrigin(settings, world)
  return async (file, options) => {
    const { partPath, onProgress, signal } = options
    const { bytes, sha256, gitSha1 } = file
    signal.throwIfAborted()
    let reported = -1
    const onSaved = (saved: number) => {
      if (saved <= reported) return
      reported = saved
      onProgress(saved)
    }
    const part = await openPart({ partPath, bytes, sha256, onSaved })
    try {
      const gitBytes = gitSha1 === undefined ? null : bytes
      const hash = createPrefixHash((offset, buffer) => part.read(offset, buffer), gitBytes)
      const bring = bringing(file, { settings, origin, options, part, hash })
      return await bringAndVerify(file, { options, part, hash, bring })
    } finally {
      await part.close()
    }
  }
}

type Parts = { options: TransferOptions; part: PartFile; hash: PrefixHash }
type Fetching = Parts & { settings: TransferSettings; origin: FetchJob['origin'] }

/** How the bytes of this file come to the disk. */
function bringing(
  file: RemoteFile,
  { settings, origin, options, part, hash }: Fetching,
): () => Promise<number> {
  const { signal, say } = options
  if ('localPath' in file.from) {
    const { localPath } = file.from
    const { localFolders } = settings
    return () => copyLocal({ localPath, localFolders, bytes: file.bytes, part, hash, signal })
  }
  const url = new URL(file.from.url)
  const job = { url, file, settings, origin, part, hash, say, signal, ignoresValidators: false }
  return () => fetchFile({ ...job, patience: createPatience(settings, say) })
}

async function bringAndVerify(
  file: RemoteFile,
  { options, part, hash, bring }: Parts & { bring: () => Promise<number> },
): Promise<TransferredFile> {
  const { say, signal } = options
  for (let refetches = 0; ; refetches++) {
    const bytes = await bring()
    await part.save()
    options.onVerifying()
    const digest = await hash.digest(bytes)
    signal.throwIfAborted()
    if (isRight(file, digest)) {
      return { bytes, sha256: digest.sha256, isVerified: isVouchedFor(file) }
    }
    await startOver({ part, hash, file })
    if (refetches === refetchesMax) {
      throw new AppError(
        'upstream_invalid_answer',
        'The file does not have the hash it must have.',
        {
          code: 'hash_mismatch',
        },
      )
    }
    say('warn', 'The hash of the file is wrong; it is fetched once more.')
  }
}

function isRight({ sha256, gitSha1 }: RemoteFile, digest: Digest): boolean {
  if (sha256 !== null) return digest.sha256 === sha256
  return gitSha1 === undefined || digest.gitSha1 === null || digest.gitSha1 === gitSha1
}
