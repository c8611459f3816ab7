import { constants } from 'node:fs'
import { type FileHandle, open, readdir, realpath, stat } from 'node:fs/promises'
import { basename, isAbsolute, join, relative, sep } from 'node:path'
import { AppError } from '#lib/errors.ts'
import { isAllowedType, unsafeFile } from './file-types.ts'
import { checkPath } from './paths.ts'
import { badSource, selectFiles } from './select-files.ts'
import type { RemoteFile, Resolved, Source, SourceContext } from './source.ts'

type LocalSource = Extract<Source, { kind: 'local' }>
type LocalSettings = { readonly localFolders: readonly string[]; readonly filesMax: number }

/** How deep folders are looked into, and how many names are looked at. */
const depthMax = 8
const namesMax = 100_000

/** A file, or what is in a folder, as far as it lies in a folder that the configuration allows. */
export async function resolveLocal(
  settings: LocalSettings,
  source: LocalSource,
  context: SourceContext,
): Promise<Resolved> {
  if (!isAbsolute(source.path) || source.path.includes('\0')) {
    throw badSource('The path must be an absolute one.')
  }
  const path = await allowedPath(source.path, settings.localFolders)
  const found = await stat(path)
  if (found.isFile()) return { revision: null, files: [single(path, found.size, context)] }
  if (!found.isDirectory()) throw badSource('The path is neither a file nor a folder.')
  const offered = await filesIn(path, settings.localFolders)
  const selected = selectFiles(offered, [], context)
  return {
    revision: null,
    files: selected.map((file) => ({ ...file, path: checkPath(file.path) })),
  }
}

/**
 * Opens a file that was resolved before. Between then and now a link may have taken its place, so
 * where it leads is looked at again.
 */
export async function openLocal(
  localPath: string,
  localFolders: readonly string[],
): Promise<FileHandle> {
  const path = await allowedPath(localPath, localFolders)
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw badSource('The path is no file any more.')
}

function single(path: string, bytes: number, { allowsUnsafe }: SourceContext): RemoteFile {
  const name = checkPath(basename(path))
  if (!isAllowedType(name, allowsUnsafe)) throw unsafeFile(name)
  return { path: name, bytes, sha256: null, from: { localPath: path } }
}

/** Without links, and inside of an allowed folder. What is elsewhere is not even told to exist. */
async function allowedPath(path: string, localFolders: readonly string[]): Promise<string> {
  const real = await realpath(path).catch(() => null)
  for (const folder of localFolders) {
    const root = await realpath(folder).catch(() => null)
    if (root === null) continue
    if (real !== null && isInside(real, root)) return real
    if (real === null && isInside(path, folder)) throw absent()
  }
  throw new AppError('permission_denied', 'Files of this folder may not be installed.', {
    code: 'host_not_allowed',
  })
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/** Links to files are followed, as far as they stay inside; hidden names and links to folders not. */
async function filesIn(folder: string, localFolders: readonly string[]): Promise<RemoteFile[]> {
  const files: RemoteFile[] = []
  let names = 0
  const look = async (at: string, depth: number) => {
    for (const entry of await readdir(join(folder, at), { withFileTypes: true })) {
      if (++names > namesMax) throw badSource(`The folder holds more than ${namesMax} names.`)
      if (entry.name.startsWith('.')) continue
      const path = at === '' ? entry.name : `${at}/${entry.name}`
      if (entry.isDirectory() && depth < depthMax) await look(path, depth + 1)
      if (!entry.isFile() && !entry.isSymbolicLink()) continue
      const localPath = await allowedPath(join(folder, path), localFolders).catch(() => null)
      const found = localPath === null ? null : await stat(localPath)
      if (localPath === null || !found?.isFile()) continue
      files.push({ path, bytes: found.size, sha256: null, from: { localPath } })
    }
  }
  await look('', 1)
  return files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

function absent(): AppError {
  return new AppError('not_found', 'There is no such file.')
}
