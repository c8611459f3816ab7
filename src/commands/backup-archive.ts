import {
  createReadStream,
  createWriteStream,
  existsSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { packTar, type TarSource, unpackTar } from 'modern-tar/fs'
import { messageOf } from '#lib/error-message.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { StartError } from '#start-error.ts'

/** A gzipped tar archive of a data folder. Its first entry describes it. */
export type BackupManifest = {
  readonly format: 1
  /** The version of Sluice that wrote it. */
  readonly version: string
  readonly created_at: string
  readonly contents: 'database and files' | 'files'
  /** The newest migration that its version knew; an older version cannot read the database. */
  readonly newest_migration: number
}

export const manifestName = 'sluice-backup.json'

/** Contents are hashes of compressed formats mostly; higher levels only take longer. */
const gzipLevel = 3
/** Hard to guess, and it may be large: only its owner may read it. */
const archiveMode = 0o600
/** What a start creates again, belongs to a running process or is downloaded. */
const excluded = /^(lock|run|speech|llama|onnx|sherpa|mp3|lock[.-].*|pglite\..*|restore-.*)$/
/** Uploads in progress. */
const unfinished = /(^|[\\/])files[\\/]unfinished[\\/]/

/** Writes the archive; the file must not exist. */
export async function writeArchive(
  file: string,
  {
    dataFolder,
    manifest,
    withModels,
  }: {
    dataFolder: string
    manifest: BackupManifest
    withModels: boolean
  },
): Promise<{ bytes: number }> {
  if (existsSync(file)) throw new StartError(`${file} exists already.`)
  const isIncluded = (name: string) => {
    if (manifest.contents === 'files') return name === 'files'
    return !excluded.test(name) && (withModels || name !== 'models')
  }
  const names = existsSync(dataFolder) ? readdirSync(dataFolder).filter(isIncluded) : []
  if (names.length === 0) throw new StartError(`There is nothing to back up in ${dataFolder}.`)
  const sources: TarSource[] = [
    { type: 'content', content: `${JSON.stringify(manifest, null, 2)}\n`, target: manifestName },
    ...names.map((name): TarSource => {
      const source = join(dataFolder, name)
      return { type: statSync(source).isDirectory() ? 'directory' : 'file', source, target: name }
    }),
  ]
  const tar = packTar(sources, { filter: (path) => !unfinished.test(path) })
  const output = createWriteStream(file, { flags: 'wx', mode: archiveMode, flush: true })
  try {
    await pipeline(tar, createGzip({ level: gzipLevel }), output)
  } catch (error) {
    rmSync(file, { force: true })
    throw error
  }
  return { bytes: statSync(file).size }
}

/** Reads the archive into an empty folder; a damaged one is an error. */
export async function readArchive(file: string, folder: string): Promise<BackupManifest> {
  try {
    await pipeline(createReadStream(file), createGunzip(), unpackTar(folder))
  } catch (error) {
    const reason = messageOf(error)
    throw new StartError(`${file} cannot be read: ${reason}.`, { cause: error })
  }
  const path = join(folder, manifestName)
  const manifest: unknown = existsSync(path) ? parseJson(await Bun.file(path).text()) : null
  if (!isManifest(manifest)) throw new StartError(`${file} is not a backup of Sluice.`)
  return manifest
}

function isManifest(value: unknown): value is BackupManifest {
  return isRecord(value) && value['format'] === 1 && typeof value['newest_migration'] === 'number'
}
