import type { FileHandle } from 'node:fs/promises'
import { openLocal } from '#installer/sources/local.ts'
import { AppError } from '#lib/errors.ts'
import type { PartFile, Version } from './part-file.ts'
import type { PrefixHash } from './prefix-hash.ts'

export type CopyJob = {
  readonly localPath: string
  readonly localFolders: readonly string[]
  /** What the source said it has. */
  readonly bytes: number | null
  readonly part: PartFile
  readonly hash: PrefixHash
  readonly signal: AbortSignal
}

const pieceBytes = 1024 * 1024

/** Copies a file of this machine, from where an earlier run came to, and answers its length. */
export async function copyLocal(job: CopyJob): Promise<number> {
  const { part, hash, signal } = job
  const file = await openLocal(job.localPath, job.localFolders)
  try {
    const version = await versionOf(file)
    const bytes = version.bytes ?? 0
    if (job.bytes !== null && job.bytes !== bytes) throw changed()
    if (part.version().validator !== version.validator) {
      hash.restart()
      await part.restart(version)
    }
    const buffer = new Uint8Array(pieceBytes)
    for (let at = part.prefixEnd(); at < bytes; ) {
      signal.throwIfAborted()
      const { bytesRead } = await file.read(buffer, 0, Math.min(pieceBytes, bytes - at), at)
      if (bytesRead === 0) throw changed()
      const piece = buffer.subarray(0, bytesRead)
      await part.write(at, [piece])
      hash.advance(at, [piece], part.prefixEnd())
      at += bytesRead
    }
    if ((await versionOf(file)).validator !== version.validator) throw changed()
    return bytes
  } finally {
    await file.close()
  }
}

async function versionOf(file: FileHandle): Promise<Version> {
  const { size, mtimeMs, ino } = await file.stat()
  return { validator: `${ino} ${size} ${mtimeMs}`, bytes: size }
}

function changed(): AppError {
  return new AppError('upstream_invalid_answer', 'The file changes while it is copied.', {
    code: 'source_changed',
  })
}
