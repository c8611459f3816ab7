import { mkdir, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing } from '#lib/durable-files.ts'
import { AppError } from '#lib/errors.ts'
import { percentDecoded } from '#lib/url.ts'

/**
 * The installer's folder:
 *
 *     org%2Fname/model.json           the record of an installed model; it names the files
 *     org%2Fname/<download>/…         the files of one download
 *     .partial/org%2Fname/<part>      partially downloaded files
 *     .partial/.removed-<id>          deletions in progress
 */
export type Layout = ReturnType<typeof createLayout>

export function createLayout(folder: string, partialsName = '.partial') {
  const partials = join(folder, partialsName)
  const model = (name: string) => join(folder, encodeURIComponent(name))
  const deletions = new Set<Promise<void>>()

  return {
    folder,
    partials,
    model,
    record: (name: string) => join(model(name), 'model.json'),
    version: (name: string, version: string) => join(model(name), version),
    partial: (name: string) => join(partials, encodeURIComponent(name)),

    /** Models with a folder, complete or not. */
    models: () => modelsIn(folder),
    /** Models with partially downloaded files. */
    partialModels: () => modelsIn(partials),

    /** Frees the name at once by a rename; the deletion follows in the background. */
    async remove(path: string): Promise<void> {
      await mkdir(partials, { recursive: true })
      const aside = join(partials, `${removedPrefix}${Bun.randomUUIDv7()}`)
      try {
        await rename(path, aside)
      } catch (error) {
        if (isMissing(error)) return
        throw error
      }
      // After a failure, `removeLeftovers` deletes it.
      const deletion = rm(aside, { recursive: true, force: true }).catch(() => {})
      deletions.add(deletion)
      void deletion.finally(() => deletions.delete(deletion))
    },
    /** Resolves when all deletions have ended. */
    async deleted(): Promise<void> {
      await Promise.all(deletions)
    },

    /** Deletes what earlier processes could not. */
    async removeLeftovers(): Promise<void> {
      for (const name of await namesIn(partials)) {
        if (!name.startsWith(removedPrefix)) continue
        await rm(join(partials, name), { recursive: true, force: true })
      }
    },

    async disk(): Promise<{ total: number; free: number }> {
      await mkdir(folder, { recursive: true })
      const { blocks, bavail, bsize } = await statfs(folder)
      return { total: blocks * bsize, free: bavail * bsize }
    },
  }
}

/** Not a valid start of a model name. */
const removedPrefix = '.removed-'
const blockBytes = 512

/** The disk usage of a folder, in bytes, without one of the folders in it. */
export async function diskBytes(folder: string, without?: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, entry.name)
    if (path === without) continue
    if (entry.isDirectory()) bytes += await diskBytes(path)
    else
      bytes += await stat(path).then(
        ({ blocks }) => blocks * blockBytes,
        () => 0,
      )
  }
  return bytes
}

/** The overhead of file systems. */
const diskOverhead = 1.05

/** Throws `insufficient_storage` if this many bytes do not fit, of which `partial` holds some. */
export async function requireDiskSpace(
  layout: Pick<Layout, 'disk'>,
  { bytes, partial, reserveBytes }: { bytes: number; partial: string; reserveBytes: number },
): Promise<void> {
  const { free } = await layout.disk()
  const missing = Math.max(0, bytes * diskOverhead - (await diskBytes(partial)))
  if (missing + reserveBytes <= free) return
  const needed = Math.ceil(missing + reserveBytes)
  throw new AppError(
    'insufficient_storage',
    `The disk has ${free} bytes free; ${needed} are needed, including the reserve.`,
  )
}

export async function namesIn(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch((error) => {
    if (isMissing(error)) return []
    throw error
  })
}

async function modelsIn(folder: string): Promise<readonly string[]> {
  const names = await namesIn(folder)
  return names.filter((name) => !name.startsWith('.')).flatMap(decodeName)
}

/** Skips names that this program did not create. */
function decodeName(name: string): string[] {
  const decoded = percentDecoded(name)
  return encodeURIComponent(decoded) === name ? [decoded] : []
}

/** The folder of installed models. */
export function modelsFolder(config: {
  readonly data: string
  readonly installer: { readonly folder?: string }
}): string {
  return config.installer.folder ?? join(config.data, 'models')
}
