import type { ChangeNotifier } from '#db/change-notifier.ts'
import type { Jobs, Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { refused } from '#lib/unprocessable.ts'
import type { InstallDeps } from './install.ts'
import { sumOf } from './install.ts'
import type { Download, InstallWish, Started } from './installer.ts'
import { absentModel, type Library } from './library.ts'
import { describeSource, isCurrent, isOfOrigin } from './names.ts'
import type { PullDeps } from './pull.ts'
import { lackingBytes } from './reuse.ts'
import { demandRoom } from './room.ts'
import type { Resolved, Source } from './sources/source.ts'
import {
  countActive,
  type DownloadRow,
  type DownloadStore,
  findActive,
  type Handle,
  insertDownload,
  lockModel,
  readDownload,
  type Task,
} from './store.ts'
import { viewOf } from './view.ts'
import { downloadQueue } from './work.ts'

export type StartDeps = Pick<InstallDeps, 'resolve' | 'layout' | 'settings'> &
  Pick<PullDeps, 'upstreams'> & {
    store: DownloadStore
    notifier: Pick<ChangeNotifier, 'notify'>
    jobs: Pick<Jobs, 'add'>
    library: Library
    now: () => Date
  }

/** Those that are not over. */
export const activeMax = 100
/** Who asks for a download waits for its source so long. */
const resolveMaxMs = 60_000

/** See `Downloads.start`. */
export async function start(
  deps: StartDeps,
  userId: string,
  { wish, signal }: { wish: InstallWish; signal: AbortSignal },
): Promise<Started> {
  const { model, source, allowsUnsafe } = wish
  const active = await deps.store.ask((handle) => findActive(handle, model))
  if (active !== undefined) return joinActive(active, source)
  const resolved = await look(deps, wish, signal)
  const installed = source.kind === 'upstream' ? undefined : await deps.library.find(model)
  if (installed !== undefined && resolved !== null) {
    if (!isOfOrigin(installed, source)) throw nameTaken(model)
    if (isCurrent(installed, resolved)) return { kind: 'installed', model: installed }
  }
  const bytesTotal = resolved === null ? null : sumOf(resolved)
  if (resolved !== null) {
    await demandRoom(deps, lackingBytes(resolved, installed), deps.layout.partial(model))
  }
  return begin(deps, {
    model,
    startedBy: userId,
    revision: resolved?.revision ?? null,
    bytesTotal,
    task: { kind: 'install', source, allowsUnsafe },
  })
}

/** What the source has; null for an upstream, which looks for itself. */
async function look(
  { resolve, upstreams }: StartDeps,
  { source, allowsUnsafe }: InstallWish,
  asked: AbortSignal,
): Promise<Resolved | null> {
  if (source.kind === 'upstream') {
    // What is built in has no address.
    if (upstreams.get(source.upstream)?.baseUrl) return null
    const sentence = `There is no upstream "${source.upstream}" that could bring models.`
    throw refused('upstream', sentence, 'bad_source')
  }
  const late = AbortSignal.timeout(resolveMaxMs)
  const signal = AbortSignal.any([asked, late])
  try {
    return await resolve(source, { signal, say() {}, allowsUnsafe })
  } catch (error) {
    throw late.aborted ? tooLate() : unresolved(error)
  }
}

function unresolved(error: unknown): unknown {
  if (!(error instanceof AppError) || error.type !== 'upstream_error') return error
  return new AppError(error.kind, error.message, { code: 'resolve_failed', cause: error })
}

function tooLate(): AppError {
  const sentence = `The source gave no answer within ${resolveMaxMs / 1000} s.`
  return new AppError('upstream_total_timeout', sentence, { code: 'resolve_failed' })
}

type Beginning = Pick<DownloadRow, 'model' | 'startedBy' | 'revision' | 'bytesTotal' | 'task'>

async function begin(deps: StartDeps, beginning: Beginning): Promise<Started> {
  return deps.store.transact(async (transaction) => {
    await lockModel(transaction, beginning.model)
    const active = await findActive(transaction, beginning.model)
    const { task } = beginning
    if (active !== undefined && task.kind === 'install') return joinActive(active, task.source)
    if (active !== undefined) throw isActive(active)
    const row = await insert(deps, transaction, beginning)
    return { kind: 'started', download: viewOf(row) }
  })
}

async function insert(
  { jobs, notifier, now }: StartDeps,
  transaction: Transaction,
  beginning: Beginning,
): Promise<DownloadRow> {
  if ((await countActive(transaction)) >= activeMax) {
    const sentence = `${activeMax} downloads are under way, which is the limit.`
    throw new AppError('conflict', sentence, { code: 'too_many_downloads' })
  }
  const id = Bun.randomUUIDv7()
  await insertDownload(transaction, { ...beginning, id, files: [], startedAt: now() })
  await enqueue({ jobs, notifier }, transaction, id)
  return demandRow(transaction, id)
}

/** Somebody takes it up; who does so already looks at it again. */
export async function enqueue(
  { jobs, notifier }: Pick<StartDeps, 'jobs' | 'notifier'>,
  transaction: Transaction,
  id: string,
): Promise<void> {
  await jobs.add(transaction, { queue: downloadQueue, key: id, payload: { downloadId: id } })
  await notifier.notify(transaction, id)
}

/** Throws `not_found`. */
export async function demandRow(handle: Handle, id: string): Promise<DownloadRow> {
  const row = await readDownload(handle, id)
  if (row === undefined) throw absent(id)
  return row
}

export function absent(id: string): AppError {
  const sentence = `There is no download with the id "${id}".`
  return new AppError('not_found', sentence, { param: 'download_id' })
}

/** See `ModelLibrary.verify`. */
export async function startVerify(
  deps: StartDeps,
  userId: string,
  name: string,
): Promise<Download> {
  const model = await deps.library.find(name)
  if (model === undefined) throw absentModel(name)
  const active = await deps.store.ask((handle) => findActive(handle, name))
  if (active?.task.kind === 'verify') return viewOf(active)
  if (active !== undefined) throw isActive(active)
  const started = await begin(deps, {
    model: name,
    startedBy: userId,
    revision: model.revision,
    bytesTotal: model.bytes,
    task: { kind: 'verify', source: model.source },
  })
  if (started.kind === 'installed') throw new Error('a check installs nothing')
  return started.download
}

function joinActive(active: DownloadRow, source: Source): Started {
  if (!isOf(active.task, source)) throw isActive(active)
  return { kind: 'under way', download: viewOf(active) }
}

function isOf(task: Task, source: Source): boolean {
  return task.kind === 'install' && Bun.deepEquals(task.source, source)
}

export function isActive({ model, task }: DownloadRow): AppError {
  const doing =
    task.kind === 'install' ? `comes from ${describeSource(task.source)}` : 'is being verified'
  return new AppError('conflict', `"${model}" ${doing} just now.`, { code: 'download_active' })
}

function nameTaken(model: string): AppError {
  return new AppError(
    'conflict',
    `A model from elsewhere is installed as "${model}"; delete it first, or give another name.`,
    { code: 'name_taken', param: 'name' },
  )
}
