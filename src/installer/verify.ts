import { createReadStream } from 'node:fs'
import { isMissing, writeDurably } from '#lib/durable-files.ts'
import { AppError } from '#lib/errors.ts'
import { type InstallerContext, waitingFile } from './installer.ts'
import { modelNotFound } from './library.ts'
import { withoutVersion } from './names.ts'
import type { DownloadAttempt } from './progress.ts'

const readBytes = 1_048_576

/** Compares the files of an installed model with the hashes of its record. */
export async function verify(
  { library, layout }: InstallerContext,
  { row, progress, signal }: DownloadAttempt,
): Promise<void> {
  const model = await library.find(row.model)
  if (model === undefined) throw modelNotFound(row.model)
  // Each attempt starts from the beginning.
  const files = model.files.map(({ path, bytes }) => waitingFile(withoutVersion(path), bytes))
  progress.setFiles(files, { bytesTotal: model.bytes })
  for (const file of model.files) {
    const path = withoutVersion(file.path)
    progress.setFile(path, { status: 'verifying' })
    const sha256 = await hashOf(library.pathOf(model, file), {
      signal,
      onProgress: (bytesCompleted) => progress.setFile(path, { bytesCompleted }),
    })
    if (sha256 !== file.sha256) {
      const record = { ...model, isVerified: false }
      await writeDurably(layout.record(model.name), JSON.stringify(record, null, 2))
      throw new AppError(
        'upstream_invalid_answer',
        `"${path}" has changed since its installation.`,
        { code: 'hash_mismatch' },
      )
    }
    progress.setFile(path, { status: 'completed', sha256 })
  }
  progress.logLine('info', 'All files are unchanged.')
}

/** Null: the file does not exist. */
async function hashOf(
  path: string,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (bytes: number) => void },
): Promise<string | null> {
  const hasher = new Bun.CryptoHasher('sha256')
  let bytes = 0
  try {
    const chunks: AsyncIterable<Uint8Array> = createReadStream(path, { highWaterMark: readBytes })
    for await (const chunk of chunks) {
      signal.throwIfAborted()
      hasher.update(chunk)
      bytes += chunk.length
      onProgress(bytes)
    }
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  return hasher.digest('hex')
}
