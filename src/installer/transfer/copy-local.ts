import type { FileHandle } from 'node:fs/promises'
import { openLocal } from '#installer/sources/local.ts'
import { AppError } from '#lib/errors.ts'
import type { PartFile, Version } from './part-file.ts'
import type { PrefixHash } from './prefix-hash.ts'

type LocalCopy = {
  readonly localPath: string
  readonly localFolders: readonly string[]
  /** The length when the source was resolved. */
  readonly bytes: number | null
  readonly part: PartFile
  readonly hash: PrefixHash
  readonly signal: AbortSignal
}

const chunkBytes = 1024 * 1024

/** Copies a file of this machine, resuming an earlier run; returns its length. */
export async function copyLocal(copy: LocalCopy): Promise<number> {
  const { part, hash, signal } = copy
  const file = await openLocal(copy.localPath, copy.localFolders)
  try {
    const version = await versionOf(file)
    const bytes = version.bytes ?? 0
    if (copy.bytes !== null && copy.bytes !== bytes) throw changed()
    if (part.version().validator !== version.validator) {
      hash.restart()
      await part.restart(version)
    }
    const buffer = new Uint8Array(chunkBytes)
    for (let at = part.prefixEnd(); at < bytes; ) {
      signal.throwIfAborted()
      const { bytesRead } = await file.read(buffer, 0, Math.min(chunkBytes, bytes - at), at)
      if (bytesRead === 0) throw changed()
      const chunk = buffer.subarray(0, bytesRead)
      await part.write(at, [chunk])
      hash.advance(at, [chunk], part.prefixEnd())
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
  return new AppError('upstream_invalid_answer', 'The file changed while it was copied.', {
    code: 'source_changed',
  })
}
