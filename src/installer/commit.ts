import { mkdir, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isMissing, syncFolder, writeDurably } from '#lib/durable-files.ts'
import type { FileState } from './installer.ts'
import { type Layout, namesIn } from './layout.ts'
import type { InstalledModel } from './library.ts'

/** A complete download: every file is in its part or already in its final place. */
export type Commitment = {
  /** The id of the download; the name of the folder of its files. */
  readonly version: string
  readonly model: string
  readonly source: string
  readonly revision: string | null
  readonly files: readonly FileState[]
}

/**
 * Moves the files of a model in place and then replaces its record atomically. Until then, the
 * previous version stays installed. Idempotent, so that it can be repeated after a crash.
 */
export async function commit(
  layout: Layout,
  { version, files, model: name, source, revision }: Commitment,
  now: () => Date,
): Promise<InstalledModel> {
  const folder = layout.version(name, version)
  await mkdir(folder, { recursive: true })
  for (const { path, part } of files) {
    if (part === null) continue
    const target = join(folder, path)
    await mkdir(dirname(target), { recursive: true })
    await moveOnce(join(layout.partial(name), part), target)
    await syncFolder(dirname(target))
  }
  await syncFolder(folder)
  await syncFolder(layout.model(name))
  const installed: InstalledModel = {
    name,
    source,
    revision,
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
  await removeOtherVersions(layout, name, version)
  await layout.remove(layout.partial(name))
  return installed
}

/** Whether all files are on this machine, in their parts or in their final place. */
export async function isComplete(
  layout: Layout,
  { version, model, files }: Pick<Commitment, 'version' | 'model' | 'files'>,
): Promise<boolean> {
  const checks = files.map(async ({ path, part }) => {
    const paths = [join(layout.version(model, version), path)]
    if (part !== null) paths.push(join(layout.partial(model), part))
    return (await Promise.all(paths.map((each) => Bun.file(each).exists()))).includes(true)
  })
  return (await Promise.all(checks)).every((exists) => exists)
}

/** A missing source was moved by an earlier run. */
async function moveOnce(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
  } catch (error) {
    if (!isMissing(error) || !(await Bun.file(to).exists())) throw error
  }
}

/** Open files stay readable. */
async function removeOtherVersions(layout: Layout, name: string, version: string): Promise<void> {
  const folder = layout.model(name)
  for (const entry of await namesIn(folder)) {
    if (entry !== version && entry !== 'model.json') await layout.remove(join(folder, entry))
  }
}
