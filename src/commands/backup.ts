import { resolve } from 'node:path'
import { clock } from '#clock.ts'
import { readOptions } from '#config/arguments.ts'
import { loadConfigFromProcess } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { lockDataFolder } from '#db/data-folder.ts'
import { newestMigration } from '#db/migrate.ts'
import { commandLine } from '#lib/own-program.ts'
import { version } from '#package.json'
import { StartError } from '#start-error.ts'
import { type BackupManifest, writeArchive } from './backup-archive.ts'

const usage = `
Usage: ${commandLine('backup')} [--file sluice-backup.tar.gz] [--models] [--files-only]

Writes the embedded database and the files of the data folder into one archive, which contains secrets.
The gateway must be stopped. --models includes downloaded models.

With PostgreSQL, use pg_dump for the database, then --files-only for the files, which works while the
gateway runs. Files in S3 are not part of the archive.`

/** The command `backup`. */
export async function backUp(args: readonly string[]): Promise<number> {
  const options = readOptions(args, {
    usage,
    options: {
      file: { type: 'string' },
      models: { type: 'boolean', default: false },
      'files-only': { type: 'boolean', default: false },
    },
  })
  if (options === null) return 0
  const config = loadConfigFromProcess([])
  const isFilesOnly = options['files-only']
  requireContents(config, isFilesOnly)
  const now = clock.now().toISOString()
  const file = resolve(
    options.file ?? `sluice-backup-${now.slice(0, 19).replaceAll(':', '')}.tar.gz`,
  )
  const manifest: BackupManifest = {
    format: 1,
    version,
    created_at: now,
    contents: isFilesOnly ? 'files' : 'database and files',
    newest_migration: newestMigration,
  }
  const lock = isFilesOnly ? null : lockDataFolder(config.data)
  try {
    const { bytes } = await writeArchive(file, {
      dataFolder: config.data,
      manifest,
      withModels: options.models,
    })
    process.stdout.write(`${file}: ${manifest.contents}, ${bytes} bytes\n`)
  } finally {
    lock?.release()
  }
  if (config.s3.bucket !== undefined) {
    process.stderr.write(`The files in the bucket ${config.s3.bucket} are not part of it.\n`)
  }
  return 0
}

function requireContents({ databaseUrl, s3 }: Config, isFilesOnly: boolean): void {
  if (databaseUrl !== undefined && !isFilesOnly) {
    throw new StartError(
      'The database is a PostgreSQL server: back it up with pg_dump, then the files with --files-only.',
    )
  }
  if (isFilesOnly && s3.bucket !== undefined) {
    throw new StartError(`The files are in the bucket ${s3.bucket}: back that up instead.`)
  }
}
