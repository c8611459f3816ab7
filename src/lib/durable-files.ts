import { type FileHandle, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError } from './errors.ts'

/** Makes the names in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Replaces a file atomically and durably. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const aside = `${path}.new`
  const file = await open(aside, 'w')
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(aside, path)
  await syncFolder(dirname(path))
}

/** Writes a whole chunk: one call may write only a part. Returns the end of the chunk in the file. */
export async function writeChunk(
  file: FileHandle,
  chunk: Uint8Array,
  offset: number,
): Promise<number> {
  for (let from = 0; from < chunk.length; ) {
    const left = chunk.length - from
    from += (await file.write(chunk, from, left, offset + from)).bytesWritten
  }
  return offset + chunk.length
}

export function isMissing(error: unknown): boolean {
  return hasCode(error, ['ENOENT', 'ENOTDIR'])
}

/** Converts the errors of full disks, quotas and process limits to `insufficient_storage`. */
export function withDiskFullError(error: unknown, message = 'The disk is full.'): unknown {
  if (!hasCode(error, ['ENOSPC', 'EDQUOT', 'EFBIG'])) return error
  return new AppError('insufficient_storage', message, { cause: error })
}

function hasCode(error: unknown, codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
