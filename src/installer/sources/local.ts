import { constants } from 'node:fs'
import { type FileHandle, open, readdir, realpath, stat } from 'node:fs/promises'
import { basename, isAbsolute, join, relative, sep } from 'node:path'
import type { InstallerSettings } from '#installer/config.ts'
import { AppError } from '#lib/errors.ts'
import { isAllowedType, unsafeFile, validatePath } from './file-rules.ts'
import { badSource, selectFiles } from './select-files.ts'
import type { RemoteFile, ResolvedSource, Source, SourceContext } from './source.ts'

type LocalSource = Extract<Source, { kind: 'local' }>

const depthMax = 8
const namesMax = 100_000

/** A file or the files of a folder, inside the folders that the configuration allows. */
export async function resolveLocal(
  { localFolders }: InstallerSettings,
  source: LocalSource,
  context: SourceContext,
): Promise<ResolvedSource> {
  if (!isAbsolute(source.path) || source.path.includes('\0')) {
    throw badSource('The path must be absolute.')
  }
  const path = await allowedPath(source.path, localFolders)
  const found = await stat(path)
  if (found.isFile()) return { revision: null, files: [single(path, found.size, context)] }
  if (!found.isDirectory()) throw badSource('The path is neither a file nor a folder.')
  const listed = await listFiles(path, localFolders)
  const selected = selectFiles(listed, [], context)
  return {
    revision: null,
    files: selected.map((file) => ({ ...file, path: validatePath(file.path) })),
  }
}

/**
 * Opens a resolved file. A symbolic link may have replaced it since, so its target is checked again.
 */
export async function openLocal(
  localPath: string,
  localFolders: readonly string[],
): Promise<FileHandle> {
  const path = await allowedPath(localPath, localFolders)
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw badSource('The path is no longer a file.')
}

function single(path: string, bytes: number, { allowsUnsafe }: SourceContext): RemoteFile {
  const name = validatePath(basename(path))
  if (!isAllowedType(name, allowsUnsafe)) throw unsafeFile(name)
  return { path: name, bytes, sha256: null, from: { localPath: path } }
}

/** The real path inside an allowed folder. Other paths are refused, existing or not. */
async function allowedPath(path: string, localFolders: readonly string[]): Promise<string> {
  const real = await realpath(path).catch(() => null)
  for (const folder of localFolders) {
    const root = await realpath(folder).catch(() => null)
    if (root === null) continue
    if (real !== null && isInside(real, root)) return real
    if (real === null && isInside(path, folder)) throw absent()
  }
  throw new AppError(
    'permission_denied',
    'Installing files of this folder is not allowed. See installer.local_folders.',
    {
      code: 'host_not_allowed',
    },
  )
}

function isInside(path: string, folder: string): boolean {
  const route = relative(folder, path)
  return route !== '..' && !route.startsWith(`..${sep}`) && !isAbsolute(route)
}

/** Follows links to allowed files; skips hidden names and links to folders. */
async function listFiles(folder: string, localFolders: readonly string[]): Promise<RemoteFile[]> {
  const files: RemoteFile[] = []
  let names = 0
  const walk = async (at: string, depth: number) => {
    for (const entry of await readdir(join(folder, at), { withFileTypes: true })) {
      if (++names > namesMax) throw badSource(`The folder holds more than ${namesMax} names.`)
      if (entry.name.startsWith('.')) continue
      const path = at === '' ? entry.name : `${at}/${entry.name}`
      if (entry.isDirectory() && depth < depthMax) await walk(path, depth + 1)
      if (!entry.isFile() && !entry.isSymbolicLink()) continue
      const localPath = await allowedPath(join(folder, path), localFolders).catch(() => null)
      const found = localPath === null ? null : await stat(localPath)
      if (localPath === null || !found?.isFile()) continue
      files.push({ path, bytes: found.size, sha256: null, from: { localPath } })
    }
  }
  await walk('', 1)
  return files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

function absent(): AppError {
  return new AppError('not_found', 'No such file.')
}
