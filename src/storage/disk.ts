import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '#lib/durable-files.ts'
import { AppError } from '#lib/errors.ts'
import { removeUnfinished, spool } from './spool.ts'
import type { Storage } from './storage.ts'

/** Stores contents in a folder. A content is written to a temporary file, synced, and renamed to its hash. */
export async function createDiskStorage(options: {
  folder: string
  now: () => Date
}): Promise<Storage> {
  const unfinished = join(options.folder, 'unfinished')
  await mkdir(unfinished, { recursive: true })
  await removeUnfinished(unfinished, options.now())
  const pathOf = (sha256: string) => join(options.folder, sha256.slice(0, 2), sha256)
  const has = (sha256: string) => Bun.file(pathOf(sha256)).exists()

  return {
    async put(source, { bytesMax, claim }) {
      const unfinishedPath = join(unfinished, Bun.randomUUIDv7())
      const content = await spool(source, unfinishedPath, { bytesMax })
      const path = pathOf(content.sha256)
      try {
        await claim?.(content)
        await mkdir(dirname(path), { recursive: true })
        // Concurrent uploads of equal contents replace each other's file with the same bytes.
        await rename(unfinishedPath, path)
        await syncFolder(dirname(path))
        await syncFolder(options.folder)
      } catch (error) {
        await rm(unfinishedPath, { force: true })
        throw error
      }
      return content
    },
    async read(sha256, range) {
      const file = Bun.file(pathOf(sha256))
      if (!(await file.exists())) throw contentNotFound()
      return (range === undefined ? file : file.slice(range.start, range.end)).stream()
    },
    has,
    remove: (sha256) => rm(pathOf(sha256), { force: true }),
    async ping() {
      await readdir(unfinished)
    },
    removeUnfinished: (now) => removeUnfinished(unfinished, now),
  }
}

export function contentNotFound(): AppError {
  return new AppError('not_found', 'The content of this file no longer exists.')
}
