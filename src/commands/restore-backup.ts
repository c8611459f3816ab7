import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ArgumentError, readOptions } from '#config/arguments.ts'
import { loadConfigFromProcess } from '#config/load.ts'
import { lockDataFolder } from '#db/data-folder.ts'
import { newestMigration } from '#db/migrate.ts'
import { commandLine } from '#lib/own-program.ts'
import { StartError } from '#start-error.ts'
import { manifestName, readArchive } from './backup-archive.ts'

const usage = `
Usage: ${commandLine('restore')} --file sluice-backup.tar.gz

Restores a backup into the data folder, where there must be no database and no files. The version must
be that of the backup or a newer one; a newer one migrates the database when it starts.`

/** The command `restore`. */
export async function restore(args: readonly string[]): Promise<number> {
  const options = readOptions(args, { usage, options: { file: { type: 'string' } } })
  if (options === null) return 0
  if (options.file === undefined) throw new ArgumentError('--file names the backup. See --help.')
  const file = resolve(options.file)
  if (!existsSync(file)) throw new StartError(`There is no file ${file}.`)
  const { data } = loadConfigFromProcess([])
  const lock = lockDataFolder(data)
  mkdirSync(data, { recursive: true })
  // Inside the data folder, since renaming works only within a file system.
  const arriving = mkdtempSync(join(data, 'restore-'))
  try {
    const manifest = await readArchive(file, arriving)
    if (manifest.newest_migration > newestMigration) {
      throw new StartError(
        `The backup is from the newer version ${manifest.version}; restore it with that.`,
      )
    }
    moveInto(data, arriving)
    process.stdout.write(`${data}: ${manifest.contents} of ${manifest.created_at}\n`)
  } finally {
    rmSync(arriving, { recursive: true, force: true })
    lock.release()
  }
  return 0
}

/** Renames everything, or nothing if anything exists. */
function moveInto(folder: string, arriving: string): void {
  const names = readdirSync(arriving).filter((name) => name !== manifestName)
  const taken = names.filter((name) => existsSync(join(folder, name)))
  if (taken.length > 0) {
    throw new StartError(`${folder} contains ${taken.join(', ')}: move that away first.`)
  }
  for (const name of names) renameSync(join(arriving, name), join(folder, name))
}
