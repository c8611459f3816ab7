import { link, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { commit, isComplete } from './commit.ts'
import { checkFileFormat } from './file-format.ts'
import { type InstallerContext, waitingFile } from './installer.ts'
import { namesIn, requireDiskSpace } from './layout.ts'
import type { InstalledFile, InstalledModel } from './library.ts'
import { describeSource } from './names.ts'
import type { InstallAttempt } from './progress.ts'
import { withRetries } from './retry.ts'
import type { RemoteFile, ResolvedSource, Source } from './sources/source.ts'
import type { DownloadTask } from './store.ts'
import type { TransferredFile } from './transfer/transfer.ts'

type InstallTask = Extract<DownloadTask, { kind: 'install' }> & {
  readonly source: Exclude<Source, { kind: 'upstream' }>
}

type InstallDeps = Pick<
  InstallerContext,
  'settings' | 'layout' | 'library' | 'resolve' | 'transferFile' | 'now'
>

/** Downloads the files of a source that are not installed yet, and installs them as the model. */
export async function install(
  deps: InstallDeps,
  attempt: InstallAttempt,
  task: InstallTask,
): Promise<void> {
  const { row, progress, signal } = attempt
  const { id: version, model, files } = row
  let { revision } = row
  const isDownloaded =
    row.status === 'committing' && (await isComplete(deps.layout, { version, model, files }))
  if (!isDownloaded) {
    revision = (await downloadFiles(deps, attempt, task)).revision
    signal.throwIfAborted()
    progress.setStatus('committing')
    // A worker that resumes in this state only commits.
    await progress.flush()
  }
  const source = describeSource(task.source)
  const commitment = { version, model, source, revision, files: progress.files() }
  const { isVerified } = await commit(deps.layout, commitment, deps.now)
  if (isVerified) progress.logLine('info', 'The model is installed.')
  else progress.logLine('warn', 'The model is installed; its files could not be verified.')
}

async function downloadFiles(
  deps: InstallDeps,
  attempt: InstallAttempt,
  task: InstallTask,
): Promise<ResolvedSource> {
  const { row, progress, signal } = attempt
  const { model } = row
  const resolved = await resolveWithRetry(deps, attempt, task)
  const remote = new Map(resolved.files.map((file) => [partOf(file, resolved), file]))
  const known = new Map(row.files.map((file) => [file.part, file]))
  const states = [...remote].map(([part, file]) => ({
    ...waitingFile(file.path, file.bytes),
    part,
    bytesCompleted: known.get(part)?.bytesCompleted ?? 0,
  }))
  const bytesTotal = totalBytes(resolved)
  progress.setFiles(states, { revision: resolved.revision, bytesTotal })
  const partial = deps.layout.partial(model)
  await preparePartials(partial, [...remote.keys()])
  const installed = await deps.library.find(model)
  const { reserveBytes } = deps.settings
  const bytes = lackingBytes(resolved, installed)
  await requireDiskSpace(deps.layout, { bytes, partial, reserveBytes })
  const size = bytesTotal === null ? 'of unknown size' : `${bytesTotal} bytes`
  progress.logLine('info', `${remote.size === 1 ? '1 file' : `${remote.size} files`}, ${size}.`)
  progress.setStatus('downloading')
  for (const [part, file] of remote) {
    signal.throwIfAborted()
    await downloadFile(deps, attempt, { partPath: join(partial, part), file, installed })
  }
  return resolved
}

/** A branch is resolved once, because the files of one revision belong together. */
async function resolveWithRetry(
  deps: InstallDeps,
  attempt: InstallAttempt,
  { source, allowsUnsafe }: InstallTask,
): Promise<ResolvedSource> {
  const { row, progress, signal } = attempt
  const isPinned = source.kind === 'hub' && row.revision !== null
  const pinned = isPinned ? { ...source, revision: row.revision ?? source.revision } : source
  return withRetries(deps, attempt, () =>
    deps.resolve(pinned, { signal, logLine: progress.logLine, allowsUnsafe }),
  )
}

async function downloadFile(
  { library, transferFile }: InstallDeps,
  { progress, signal }: InstallAttempt,
  given: { partPath: string; file: RemoteFile; installed: InstalledModel | undefined },
): Promise<void> {
  const { partPath, file, installed } = given
  const { path } = file
  const isLast = () => progress.files().every((one) => one.path === path || one.sha256 !== null)
  progress.setFile(path, { status: 'downloading' })
  const transferred =
    (await linkInstalled(library, installed, { file, partPath })) ??
    (await transferFile(file, {
      partPath,
      signal,
      logLine: progress.logLine,
      onProgress: (bytesCompleted) => progress.setFile(path, { bytesCompleted }),
      onVerifying() {
        progress.setFile(path, { status: 'verifying' })
        if (isLast()) progress.setStatus('verifying')
      },
    }))
  try {
    await checkFileFormat(path, partPath)
  } catch (error) {
    // Another download would return the same file.
    for (const name of [partPath, `${partPath}.state`]) await rm(name, { force: true })
    throw error
  }
  const { bytes, sha256, isVerified } = transferred
  const verification = isVerified ? 'its hash is verified' : 'its hash cannot be verified'
  progress.logLine('info', `"${path}" is complete; ${verification}.`)
  progress.setFile(path, {
    status: 'completed',
    sha256,
    isVerified,
    bytesTotal: bytes,
    bytesCompleted: bytes,
  })
}

/** Links an installed file with the same hash to the part; null: there is none. */
async function linkInstalled(
  { pathOf }: InstallerContext['library'],
  installed: InstalledModel | undefined,
  { file, partPath }: { file: RemoteFile; partPath: string },
): Promise<TransferredFile | null> {
  const same = findSameFile(file, installed)
  if (same === undefined || installed === undefined) return null
  try {
    await rm(partPath, { force: true })
    await link(pathOf(installed, same), partPath)
  } catch {
    // The file system has no hard links.
    return null
  }
  return { bytes: same.bytes, sha256: same.sha256, isVerified: true }
}

function findSameFile(
  { sha256 }: RemoteFile,
  installed: InstalledModel | undefined,
): InstalledFile | undefined {
  if (sha256 === null || installed?.isVerified !== true) return undefined
  return installed.files.find((file) => file.sha256 === sha256)
}

/** Known bytes of the files that are not installed in another revision. */
export function lackingBytes(
  { files }: ResolvedSource,
  installed: InstalledModel | undefined,
): number {
  return files
    .filter((file) => findSameFile(file, installed) === undefined)
    .reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
}

/** Null if the size of a file is unknown. */
export function totalBytes({ files }: ResolvedSource): number | null {
  return files.reduce<number | null>(
    (sum, { bytes }) => (sum === null || bytes === null ? null : sum + bytes),
    0,
  )
}

/** Creates the folder and deletes the parts of other revisions. */
async function preparePartials(folder: string, parts: readonly string[]): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const name of await namesIn(folder)) {
    const isUsed = parts.some((part) => name === part || name.startsWith(`${part}.`))
    if (!isUsed) await rm(join(folder, name), { recursive: true, force: true })
  }
}

/** The same name for the same bytes of a file in every download. */
function partOf({ path, sha256 }: RemoteFile, { revision }: ResolvedSource): string {
  const identity = JSON.stringify([path, sha256 ?? revision])
  return new Bun.CryptoHasher('sha256').update(identity).digest('hex').slice(0, 32)
}
