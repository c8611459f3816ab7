import { type FileHandle, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { withDiskFullError, writeChunk } from '#lib/durable-files.ts'
import { AppError } from '#lib/errors.ts'
import type { StoredContent } from './storage.ts'

/** Enough for format detection. */
const headBytesMax = 4_100
/** Older unfinished files were left by crashed processes. */
const unfinishedMsMax = 86_400_000

/**
 * Streams a content to a new file with backpressure and syncs it. Removes the file on failure. `param`:
 * the field of a form that it comes from, for errors.
 */
export async function spool(
  source: AsyncIterable<Uint8Array>,
  path: string,
  { bytesMax, param }: { bytesMax: number; param?: string },
): Promise<StoredContent> {
  const file = await open(path, 'wx')
  try {
    const content = await writeAll(source, file, { bytesMax, param })
    await file.sync()
    await file.close()
    return content
  } catch (error) {
    await file.close()
    await rm(path, { force: true })
    throw withDiskFullError(error, 'The storage is full.')
  }
}

/** Removes the files of uploads that crashed processes left unfinished. */
export async function removeUnfinished(folder: string, now: Date): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    // It may have been completed meanwhile.
    const mtimeMs = await stat(path).then(
      (found) => found.mtimeMs,
      () => now.getTime(),
    )
    if (mtimeMs < now.getTime() - unfinishedMsMax) await rm(path, { force: true })
  }
}

async function writeAll(
  source: AsyncIterable<Uint8Array>,
  file: FileHandle,
  { bytesMax, param }: { bytesMax: number; param: string | undefined },
): Promise<StoredContent> {
  const hasher = new Bun.CryptoHasher('sha256')
  const heads: Uint8Array[] = []
  let headBytes = 0
  let bytes = 0
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > bytesMax) {
      throw new AppError('request_too_large', `The file exceeds the limit of ${bytesMax} bytes.`, {
        code: 'file_too_large',
        ...(param !== undefined && { param }),
      })
    }
    if (headBytes < headBytesMax) {
      const part = chunk.slice(0, headBytesMax - headBytes)
      heads.push(part)
      headBytes += part.length
    }
    hasher.update(chunk)
    await writeChunk(file, chunk, bytes - chunk.length)
  }
  return { sha256: hasher.digest('hex'), bytes, head: Buffer.concat(heads, headBytes) }
}
