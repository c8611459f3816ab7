import { AppError } from '#lib/errors.ts'
import { isAllowedType, pathFault, unsafeFile, validatePath } from './file-rules.ts'
import type { SourceContext } from './source.ts'

export type ListedFile = { readonly path: string; readonly bytes: number | null }

const globsMax = 32
const globCharsMax = 256
/** Choices that an error message lists. */
const choicesShownMax = 30

/**
 * The files that match the globs; without globs, all of an allowed type. A file that a glob names
 * literally must be allowed; other matches that are not allowed are skipped.
 */
export function selectFiles<F extends ListedFile>(
  listed: readonly F[],
  globs: readonly string[],
  { allowsUnsafe, logLine }: Pick<SourceContext, 'allowsUnsafe' | 'logLine'>,
): readonly F[] {
  const matching = globs.length === 0 ? listed : matchGlobs(listed, globs)
  const isAllowed = ({ path }: F) => pathFault(path) === null && isAllowedType(path, allowsUnsafe)
  const named = matching.find((file) => globs.includes(file.path) && !isAllowed(file))
  if (named !== undefined) throw fileError(named.path)
  const selected = matching.filter(isAllowed)
  const [first] = matching
  if (first === undefined) throw noFiles(`No file of the source matches ${globs.join(', ')}.`)
  if (selected.length === 0) throw fileError(first.path)
  const skipped = matching.length - selected.length
  if (skipped > 0) logLine('info', `Skipping ${skipped} files of other types.`)
  return selected
}

/** Rejects files with the same path, also on file systems that ignore case. */
export function rejectConflictingPaths(
  files: readonly { readonly path: string }[],
  filesMax: number,
): void {
  if (files.length > filesMax) {
    throw badSource(`The source has ${files.length} files; the limit is ${filesMax}.`)
  }
  const paths = new Set(files.map(({ path }) => path.toLowerCase()))
  const folders = new Set([...paths].flatMap(foldersOf))
  const isFolderToo = [...paths].some((path) => folders.has(path))
  if (paths.size < files.length || isFolderToo) {
    throw badSource('The source has two files with the same path.')
  }
}

export function badSource(message: string): AppError {
  return new AppError('unprocessable', message, { code: 'bad_source' })
}

export function noFiles(message: string): AppError {
  return new AppError('unprocessable', message, { code: 'no_files' })
}

/** The fault of the path, else of the type. */
function fileError(path: string): AppError {
  return unsafeFile(validatePath(path))
}

function matchGlobs<F extends ListedFile>(
  listed: readonly F[],
  globs: readonly string[],
): readonly F[] {
  if (globs.length > globsMax || globs.some((glob) => glob.length > globCharsMax)) {
    throw badSource(`At most ${globsMax} globs of ${globCharsMax} characters are allowed.`)
  }
  const matchers = globs.map((glob) => new Bun.Glob(glob))
  return listed.filter(
    ({ path }) => globs.includes(path) || matchers.some((matcher) => matcher.match(path)),
  )
}

/** Several quantisations of one model are only installed on request. */
export function requireOneQuantisation(files: readonly ListedFile[]): void {
  const bytesByGlob = new Map<string, number>()
  for (const { path, bytes } of files) {
    if (!path.endsWith('.gguf') || isCompanion(path)) continue
    const glob = globOfShards(path)
    bytesByGlob.set(glob, (bytesByGlob.get(glob) ?? 0) + (bytes ?? 0))
  }
  if (bytesByGlob.size < 2) return
  const shown = [...bytesByGlob]
    .slice(0, choicesShownMax)
    .map(([glob, bytes]) => `${glob} (${Math.round(bytes / 1e6)} MB)`)
  const hidden = bytesByGlob.size - choicesShownMax
  const more = hidden > 0 ? `, and ${hidden} more` : ''
  throw new AppError(
    'unprocessable',
    `The source holds several models; select one with "files": ${shown.join(', ')}${more}.`,
    { code: 'choose_files', param: 'files' },
  )
}

/** The shards of a model are one choice: `x-00001-of-00003.gguf` → `x-*-of-00003.gguf`. */
function globOfShards(path: string): string {
  return path.replace(/-\d{5}-of-(\d{5})\.gguf$/, '-*-of-$1.gguf')
}

/** Files that accompany a model: vision projectors and importance matrices. */
function isCompanion(path: string): boolean {
  return /(?:^|[/._-])(?:mmproj|imatrix)/i.test(path)
}

function foldersOf(path: string): string[] {
  const names = path.split('/').slice(0, -1)
  return names.map((_, index) => names.slice(0, index + 1).join('/'))
}
