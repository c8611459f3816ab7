import { mkdir, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { InstalledModel } from './installed.ts'
import { isMissing, type Layout, namesIn, syncFolder, writeDurably } from './layout.ts'
import type { FileState } from './store.ts'

/** What is to be installed: every file is whole, in its part or already where it belongs. */
export type Commitment = {
  /** The id of the download, which names the folder of its files. */
  readonly version: string
  readonly model: string
  readonly source: string
  readonly revision: string | null
  readonly files: readonly FileState[]
}

/**
 * Puts the files of a model in place and then, in one step, says that they are the model. Until then
 * what was installed before stays as it is. It may be done again after a crash at any place.
 */
export async function commit(
  layout: Layout,
  { version, files, ...made }: Commitment,
  now: () => Date,
): Promise<InstalledModel> {
  const { model: name } = made
  const folder = layout.version(name, version)
  await mkdir(folder, { recursive: true })
  for (const { path, part } of files) {
    if (part === null) continue
    const place = join(folder, path)
    await mkdir(dirname(place), { recursive: true })
    await moveOnce(join(layout.partial(name), part), place)
    await syncFolder(dirname(place))
  }
  await syncFolder(folder)
  await syncFolder(layout.model(name))
  const installed: InstalledModel = {
    name,
    source: made.source,
    revision: made.revision,
    files: files.map(({ path, bytesCompleted, sha256 }) => ({
      path: `${version}/${path}`,
      bytes: bytesCompleted,
      sha256: sha256 ?? '',
    })),
    bytes: files.reduce((sum, { bytesCompleted }) => sum + bytesCompleted, 0),
    isVerified: files.every(({ isVerified }) => isVerified),
    installedAt: now().toISOString(),
  }
  await writeDurably(layout.record(name), JSON.stringify(installed, null, 2))
  await syncFolder(layout.folder)
  await removeOthers(layout, name, version)
  await layout.remove(layout.partial(name))
  return installed
}

/** Whether all files are on this machine, in their parts or already where they belong. */
export async function isAtHand(
  layout: Layout,
  { version, model, files }: Pick<Commitment, 'version' | 'model' | 'files'>,
): Promise<boolean> {
  const are = files.map(async ({ path, part }) => {
    const places = [join(layout.version(model, version), path)]
    if (part !== null) places.push(join(layout.partial(model), part))
    return (await Promise.all(places.map((place) => Bun.file(place).exists()))).includes(true)
  })
  return (await Promise.all(are)).every((isThere) => isThere)
}

/** Where it is not any more, it was moved before. */
async function moveOnce(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if (!isMissing(error) || !(await Bun.file(to).exists())) throw error
  }
}

/** What is open stays readable for whoever reads it. */
async function removeOthers(layout: Layout, name: string, version: string): Promise<void> {
  const folder = layout.model(name)
  for (const entry of await namesIn(folder)) {
    if (entry !== version && entry !== 'model.json') await layout.remove(join(folder, entry))
  }
}
