import { mkdir, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/**
 * Where things lie in the installer's folder:
 *
 *     org%2Fname/model.json           what is installed; it names the files of one version
 *     org%2Fname/<download>/…         the files of a version
 *     .partial/org%2Fname/<part>      what is on its way
 *     .partial/.removed-<id>          what is being deleted
 */
export type Layout = ReturnType<typeof createLayout>

export function createLayout(folder: string) {
  const partials = join(folder, '.partial')
  const model = (name: string) => join(folder, encodeURIComponent(name))
  const deletions = new Set<Promise<void>>()

  function deleteSoon(path: string) {
    // What cannot be deleted now is a leftover to the next process.
    const deletion = rm(path, { recursive: true, force: true }).catch(() => {})
    deletions.add(deletion)
    void deletion.finally(() => deletions.delete(deletion))
  }

  return {
    folder,
    partials,
    model,
    record: (name: string) => join(model(name), 'model.json'),
    version: (name: string, version: string) => join(model(name), version),
    partial: (name: string) => join(partials, encodeURIComponent(name)),

    /** The models that have a folder, whole or not. */
    models: () => modelsIn(folder),
    /** The models that something is kept for which is not whole. */
    partialModels: () => modelsIn(partials),

    /** Gone under its name at once, however long the deletion takes. */
    async remove(path: string): Promise<void> {
      await mkdir(partials, { recursive: true })
      const aside = join(partials, `${removedPrefix}${Bun.randomUUIDv7()}`)
      try {
        await rename(path, aside)
      } catch (error) {
        if (isMissing(error)) return
        throw error
      }
      deleteSoon(aside)
    },
    /** Resolves when nothing is being deleted any more. */
    async deleted(): Promise<void> {
      await Promise.all(deletions)
    },

    /** What a process that ended did not come to delete. */
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

/** No name of a model begins like this. */
const removedPrefix = '.removed-'
const blockBytes = 512

/** What the files of a folder take on the disk, in bytes. */
export async function diskBytes(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += await diskBytes(path)
    else
      bytes += await stat(path).then(
        ({ blocks }) => blocks * blockBytes,
        () => 0,
      )
  }
  return bytes
}

/** A name is durable once its folder is. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** There whole or not at all, also after the power was gone. */
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

/** What was not put there by us is none of ours. */
function decodeName(name: string): string[] {
  try {
    const decoded = decodeURIComponent(name)
    return encodeURIComponent(decoded) === name ? [decoded] : []
  } catch {
    return []
  }
}

export function isMissing(error: unknown): boolean {
  if (!(error instanceof Error && 'code' in error)) return false
  return error.code === 'ENOENT' || error.code === 'ENOTDIR'
}
