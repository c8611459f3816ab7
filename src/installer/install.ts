import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { sleep } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { commit, isAtHand } from './commit.ts'
import { checkFileKind } from './file-kinds.ts'
import type { InstalledModel } from './installed.ts'
import { type Layout, namesIn } from './layout.ts'
import type { Library } from './library.ts'
import { describeSource } from './names.ts'
import { lackingBytes, reuse } from './reuse.ts'
import { demandRoom, type RoomSettings } from './room.ts'
import type { Run } from './run.ts'
import {
  isFinal,
  type RemoteFile,
  type Resolve,
  type Resolved,
  type Source,
} from './sources/source.ts'
import type { FileState, Task } from './store.ts'
import type { TransferFile } from './transfer/transfer.ts'

export type InstallDeps = {
  resolve: Resolve
  transferFile: TransferFile
  layout: Layout
  library: Pick<Library, 'find' | 'pathOf'>
  settings: RoomSettings & { readonly attemptsMax: number; readonly backoffMs: number }
  now: () => Date
}

type InstallTask = Extract<Task, { kind: 'install' }> & {
  readonly source: Exclude<Source, { kind: 'upstream' }>
}

const pauseMaxMs = 60_000

/** Brings what a source has, and makes it the model; what is already there is not brought again. */
export async function install(deps: InstallDeps, run: Run, task: InstallTask): Promise<void> {
  const { row, progress, signal } = run
  const { id: version, model, files } = row
  if (row.status === 'committing' && (await isAtHand(deps.layout, { version, model, files }))) {
    return put(deps, run, { task, revision: row.revision })
  }
  const { revision } = await bring(deps, run, task)
  signal.throwIfAborted()
  progress.setStatus('committing')
  // A process that finds this goes on by putting the files in place.
  await progress.flush()
  await put(deps, run, { task, revision })
}

async function put(
  { layout, now }: InstallDeps,
  { row, progress }: Run,
  { task, revision }: { task: InstallTask; revision: string | null },
): Promise<void> {
  const made = { version: row.id, model: row.model, source: describeSource(task.source), revision }
  const { isVerified } = await commit(layout, { ...made, files: progress.files() }, now)
  progress.say(
    isVerified ? 'info' : 'warn',
    isVerified
      ? 'The model is installed.'
      : 'The model is installed; nobody vouches for its files.',
  )
}

async function bring(deps: InstallDeps, run: Run, task: InstallTask): Promise<Resolved> {
  const { row, progress, signal } = run
  const resolved = await resolveAgain(deps, run, task)
  const remote = new Map(resolved.files.map((file) => [partOf(file, resolved), file]))
  const known = new Map(row.files.map((file) => [file.part, file]))
  const states = [...remote].map(([part, file]) => stateOf(file, part, known.get(part)))
  progress.setFiles(states, { revision: resolved.revision, bytesTotal: sumOf(resolved) })
  await prepare(deps, row.model, new Set(remote.keys()))
  const installed = await deps.library.find(row.model)
  await demandRoom(deps, lackingBytes(resolved, installed), deps.layout.partial(row.model))
  progress.say('info', `${remote.size} files, ${sumOf(resolved) ?? 'an unknown number of'} bytes.`)
  progress.setStatus('downloading')
  for (const [part, file] of remote) {
    signal.throwIfAborted()
    await bringFile(deps, run, { part, file, installed })
  }
  return resolved
}

/** The files of one revision belong together, so a branch is asked for only once. */
async function resolveAgain(
  { resolve, settings }: InstallDeps,
  { row, progress, signal }: Run,
  { source, allowsUnsafe }: InstallTask,
): Promise<Resolved> {
  const isPinned = source.kind === 'hub' && row.revision !== null
  const pinned = isPinned ? { ...source, revision: row.revision ?? source.revision } : source
  for (let tries = 1; ; tries++) {
    try {
      return await resolve(pinned, { signal, say: progress.say, allowsUnsafe })
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof AppError) || isFinal(error) || tries >= settings.attemptsMax)
        throw error
      progress.say('warn', `${error.message} It is asked again.`)
      const pauseMs = Math.min(settings.backoffMs * 2 ** (tries - 1), pauseMaxMs)
      await sleep(pauseMs * (0.5 + Math.random() / 2), signal)
    }
  }
}

type Bringing = {
  readonly part: string
  readonly file: RemoteFile
  readonly installed: InstalledModel | undefined
}

async function bringFile(
  deps: InstallDeps,
  { row, progress, signal }: Run,
  { part, file, installed }: Bringing,
): Promise<void> {
  const { path } = file
  const partPath = join(deps.layout.partial(row.model), part)
  const isLast = () => progress.files().every((one) => one.path === path || one.sha256 !== null)
  progress.setFile(path, { status: 'downloading' })
  const reused = await reuse(deps.library, installed, { file, partPath })
  const transfer = () =>
    deps.transferFile(file, {
      partPath,
      signal,
      say: progress.say,
      onProgress: (bytesCompleted) => progress.setFile(path, { bytesCompleted }),
      onVerifying() {
        progress.setFile(path, { status: 'verifying' })
        if (isLast()) progress.setStatus('verifying')
      },
    })
  const brought = reused ?? (await transfer())
  try {
    await checkFileKind(path, partPath)
  } catch (error) {
    // It would be no better the next time.
    for (const name of [partPath, `${partPath}.state`]) await rm(name, { force: true })
    throw error
  }
  const known = brought.isVerified ? 'and has the right hash' : 'and nobody vouches for its hash'
  progress.say('info', `"${path}" is here, ${known}.`)
  progress.setFile(path, {
    status: 'completed',
    sha256: brought.sha256,
    isVerified: brought.isVerified,
    bytesTotal: brought.bytes,
    bytesCompleted: brought.bytes,
  })
}

/** Parts of other revisions are of no use any more. */
async function prepare({ layout }: InstallDeps, model: string, parts: Set<string>): Promise<void> {
  const folder = layout.partial(model)
  await mkdir(folder, { recursive: true })
  for (const name of await namesIn(folder)) {
    const isOfUse = [...parts].some((part) => name === part || name.startsWith(`${part}.`))
    if (!isOfUse) await rm(join(folder, name), { recursive: true, force: true })
  }
}

function stateOf(file: RemoteFile, part: string, known: FileState | undefined): FileState {
  return {
    path: file.path,
    part,
    bytesTotal: file.bytes,
    status: 'waiting' as const,
    bytesCompleted: known?.bytesCompleted ?? 0,
    sha256: null,
    isVerified: false,
  }
}

/** The same for the same bytes of the same file, whichever download brings them. */
function partOf({ path, sha256 }: RemoteFile, { revision }: Resolved): string {
  const meant = JSON.stringify([path, sha256 ?? revision])
  return new Bun.CryptoHasher('sha256').update(meant).digest('hex').slice(0, 32)
}

/** Null where a size is not known. */
export function sumOf({ files }: Resolved): number | null {
  return files.reduce<number | null>(
    (sum, { bytes }) => (sum === null || bytes === null ? null : sum + bytes),
    0,
  )
}
