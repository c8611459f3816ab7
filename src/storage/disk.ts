import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError } from '#lib/errors.ts'
import { removeUnfinished, spool } from './spool.ts'
import type { Storage } from './storage.ts'

/**
 * Contents in a folder: written aside, made durable, then named by their hash, so that a content is
 * there whole or not at all.
 */
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
    async put(source, limits) {
      const aside = join(unfinished, Bun.randomUUIDv7())
      const content = await spool(source, aside, limits)
      const path = pathOf(content.sha256)
      try {
        await mkdir(dirname(path), { recursive: true })
        // Equal contents may come at once; each rename puts the same bytes there.
        await rename(aside, path)
        await syncFolder(dirname(path))
        await syncFolder(options.folder)
      } catch (error) {
        await rm(aside, { force: true })
        throw error
      }
      return content
    },
    async read(sha256, range) {
      const file = Bun.file(pathOf(sha256))
      if (!(await file.exists())) throw absent()
      return (range === undefined ? file : file.slice(range.start, range.end)).stream()
    },
    has,
    remove: (sha256) => rm(pathOf(sha256), { force: true }),
    async ping() {
      await readdir(unfinished)
    },
  }
}

/** A name is durable once its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function absent(): AppError {
  return new AppError('not_found', 'The content of this file is gone.')
}
