import { existsSync, statfsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, rmdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { type Finding, fail, ok, warn } from '#doctor/finding.ts'
import { reasonOf, sizeOf } from '#doctor/format.ts'
import type { CheckGroup } from './check.ts'

/** Less free space stops the embedded database and uploads. */
const freeBytesMin = 104_857_600
const freeBytesAdvised = 1_073_741_824

/** The writable folders. */
export const folders: CheckGroup = {
  name: 'folders',
  limitMs: () => 5_000,
  async check({ config }) {
    const models = config.installer.folder ?? join(config.data, 'models')
    return [
      await folderFinding('data folder', resolve(config.data), {
        key: 'data (SLUICE_DATA)',
        advisedBytes: freeBytesAdvised,
      }),
      await folderFinding('models folder', resolve(models), {
        key: 'installer.folder (SLUICE_MODELS)',
        advisedBytes: config.installer.reserveBytes,
      }),
    ]
  },
}

async function folderFinding(
  check: string,
  folder: string,
  { key, advisedBytes }: { key: string; advisedBytes: number },
): Promise<Finding> {
  const exists = existsSync(folder)
  // A missing folder is created in its nearest existing parent.
  const written = exists ? folder : nearest(folder)
  try {
    await tryToWrite(written)
  } catch (error) {
    return fail(
      check,
      `${folder} cannot be ${exists ? 'written' : 'created'}: ${reasonOf(error)}`,
      `Give the server's user write permission, or set ${key}.`,
    )
  }
  const { bavail, bsize } = statfsSync(written)
  const free = bavail * bsize
  const detail = `${folder}${exists ? '' : ', created when needed'}; ${sizeOf(free)} free`
  const advice = `Free disk space, or set ${key} to a larger disk.`
  if (free < freeBytesMin) return fail(check, detail, advice)
  return free < advisedBytes ? warn(check, detail, advice) : ok(check, detail)
}

function nearest(folder: string): string {
  const parent = dirname(folder)
  return existsSync(parent) || parent === folder ? parent : nearest(parent)
}

/** Creates and removes a folder, as the server does. */
async function tryToWrite(folder: string): Promise<void> {
  const own = await mkdtemp(join(folder, '.doctor-'))
  try {
    await mkdir(join(own, 'folder'))
    await rmdir(join(own, 'folder'))
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}
