import { AppError } from '#lib/errors.ts'
import { isAllowedType, unsafeFile } from './file-types.ts'
import { checkPath, faultOfPath } from './paths.ts'
import type { SourceContext } from './source.ts'

export type Offered = { readonly path: string; readonly bytes: number | null }

const globsMax = 32
const globCharsMax = 256
/** Of a list that people choose from. */
const choicesShownMax = 30

/**
 * Which of the files are meant; without a glob: everything of an allowed type. A file that a glob names letter by
 * letter must be fit; what only happens to match is left out where it is not.
 */
export function selectFiles<F extends Offered>(
  offered: readonly F[],
  globs: readonly string[],
  { allowsUnsafe, say }: Pick<SourceContext, 'allowsUnsafe' | 'say'>,
): readonly F[] {
  const meant = globs.length === 0 ? offered : matching(offered, globs)
  const isFit = ({ path }: F) => faultOfPath(path) === null && isAllowedType(path, allowsUnsafe)
  const named = meant.find((file) => globs.includes(file.path) && !isFit(file))
  if (named !== undefined) throw unfit(named.path)
  const selected = meant.filter(isFit)
  const [first] = meant
  if (first === undefined) throw noFiles('The source has no such files.')
  if (selected.length === 0) throw unfit(first.path)
  const leftOut = meant.length - selected.length
  if (leftOut > 0) say('info', `${leftOut} files are of other types and are left out.`)
  return selected
}

/** Files of the same path would overwrite each other, on some disks whatever their case. */
export function refuseConflicts(
  files: readonly { readonly path: string }[],
  filesMax: number,
): void {
  if (files.length > filesMax) {
    throw badSource(`The source has ${files.length} files; ${filesMax} are allowed.`)
  }
  const paths = new Set(files.map(({ path }) => path.toLowerCase()))
  const folders = new Set([...paths].flatMap(foldersOf))
  const isFolderToo = [...paths].some((path) => folders.has(path))
  if (paths.size < files.length || isFolderToo) {
    throw badSource('The source has two files of the same name.')
  }
}

export function badSource(sentence: string): AppError {
  return new AppError('unprocessable', sentence, { code: 'bad_source' })
}

export function noFiles(sentence: string): AppError {
  return new AppError('unprocessable', sentence, { code: 'no_files' })
}

/** Why a file is not taken: for its path, else for its type. */
function unfit(path: string): AppError {
  return unsafeFile(checkPath(path))
}

function matching<F extends Offered>(
  offered: readonly F[],
  globs: readonly string[],
): readonly F[] {
  if (globs.length > globsMax || globs.some((glob) => glob.length > globCharsMax)) {
    throw badSource(`At most ${globsMax} globs of ${globCharsMax} characters may be given.`)
  }
  const matchers = globs.map((glob) => new Bun.Glob(glob))
  return offered.filter(
    ({ path }) => globs.includes(path) || matchers.some((matcher) => matcher.match(path)),
  )
}

/** One model in several quantisations is too much to take without having been asked to. */
export function refuseManyQuantisations(files: readonly Offered[]): void {
  const bytesOf = new Map<string, number>()
  for (const { path, bytes } of files) {
    if (!path.endsWith('.gguf') || isCompanion(path)) continue
    const glob = globOfShards(path)
    bytesOf.set(glob, (bytesOf.get(glob) ?? 0) + (bytes ?? 0))
  }
  if (bytesOf.size < 2) return
  const shown = [...bytesOf]
    .slice(0, choicesShownMax)
    .map(([glob, bytes]) => `${glob} (${Math.round(bytes / 1e6)} MB)`)
  const more = bytesOf.size > choicesShownMax ? `, and ${bytesOf.size - choicesShownMax} more` : ''
  throw new AppError(
    'unprocessable',
    `The source holds several models; say which in files: ${shown.join(', ')}${more}.`,
    { code: 'choose_files', param: 'files' },
  )
}

/** A model in parts is one choice: `x-00001-of-00003.gguf` → `x-*-of-00003.gguf`. */
function globOfShards(path: string): string {
  return path.replace(/-\d{5}-of-(\d{5})\.gguf$/, '-*-of-$1.gguf')
}

/** What belongs to a model without being one: what sees for it, what it was quantised by. */
function isCompanion(path: string): boolean {
  return /(?:^|[/._-])(?:mmproj|imatrix)/i.test(path)
}

function foldersOf(path: string): string[] {
  const names = path.split('/').slice(0, -1)
  return names.map((_, index) => names.slice(0, index + 1).join('/'))
}
