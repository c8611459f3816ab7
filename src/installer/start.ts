import type { Transaction } from '#db/client.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import { recordDownload } from './audit.ts'
import { lackingBytes, totalBytes } from './install.ts'
import type { InstallerContext, InstallRequest, StartResult } from './installer.ts'
import { requireDiskSpace } from './layout.ts'
import { modelNotFound } from './library.ts'
import { isCurrent, isFromSource, taskSource } from './names.ts'
import { downloadName, runtimeNotFound, stateOf } from './runtime.ts'
import type { ResolvedSource, Source } from './sources/source.ts'
import {
  countActive,
  type Download,
  findActive,
  insertDownload,
  lockModel,
  requireDownload,
} from './store.ts'

export const downloadQueue = 'download'
export const activeDownloadsMax = 100
/** How long a start request waits for the source. */
const resolveMaxMs = 60_000

/**
 * Resolves the source, then queues the download for any worker. Idempotent: the same request returns
 * the active download, or the installed model if it is current.
 *
 * Throws the errors of `ResolveSource`, with the code `resolve_failed` if the source is unreachable;
 * `conflict` (`download_active`, `name_taken`, `too_many_downloads`); `insufficient_storage`.
 */
export async function startInstall(
  deps: InstallerContext,
  principal: RequestPrincipal,
  request: InstallRequest,
  signal: AbortSignal,
): Promise<StartResult> {
  const { model, source, allowsUnsafe } = request
  const active = await deps.store.query((handle) => findActive(handle, model))
  if (active !== undefined) return joinActive(active, source)
  const resolved = await resolveSource(deps, request, signal)
  const installed = source.kind === 'upstream' ? undefined : await deps.library.find(model)
  if (installed !== undefined && resolved !== null) {
    if (!isFromSource(installed, source)) throw nameTaken(model)
    if (isCurrent(installed, resolved)) return { kind: 'installed', model: installed }
  }
  if (resolved !== null) {
    await requireDiskSpace(deps.layout, {
      bytes: lackingBytes(resolved, installed),
      partial: deps.layout.partial(model),
      reserveBytes: deps.settings.reserveBytes,
    })
  }
  return insertOrJoin(deps, principal, {
    model,
    revision: resolved?.revision ?? null,
    bytesTotal: resolved === null ? null : totalBytes(resolved),
    task: { kind: 'install', source, allowsUnsafe },
  })
}

/** Null for an upstream, which resolves the model itself. */
async function resolveSource(
  { resolve, findUpstream }: InstallerContext,
  { source, allowsUnsafe }: InstallRequest,
  requestSignal: AbortSignal,
): Promise<ResolvedSource | null> {
  if (source.kind === 'upstream') {
    // Built-in upstreams have no URL.
    if (findUpstream(source.upstream)?.baseUrl) return null
    const message = `There is no upstream "${source.upstream}" that can download models.`
    throw refused('upstream', message, 'bad_source')
  }
  const timeout = AbortSignal.timeout(resolveMaxMs)
  const signal = AbortSignal.any([requestSignal, timeout])
  try {
    return await resolve(source, { signal, logLine() {}, allowsUnsafe })
  } catch (error) {
    if (timeout.aborted) {
      const message = `The source did not respond within ${resolveMaxMs / 1000} s.`
      throw new AppError('upstream_total_timeout', message, { code: 'resolve_failed' })
    }
    if (!(error instanceof AppError) || error.type !== 'upstream_error') throw error
    throw new AppError(error.kind, error.message, { code: 'resolve_failed', cause: error })
  }
}

type NewDownload = Pick<Download, 'model' | 'revision' | 'bytesTotal' | 'task'>

async function insertOrJoin(
  deps: InstallerContext,
  principal: RequestPrincipal,
  added: NewDownload,
): Promise<StartResult> {
  const { store, now } = deps
  return store.transact(async (transaction) => {
    await lockModel(transaction, added.model)
    const active = await findActive(transaction, added.model)
    const { task } = added
    if (active !== undefined && task.kind === 'install') return joinActive(active, task.source)
    if (active?.task.kind === 'runtime') return { kind: 'active', download: active }
    if (active !== undefined) throw downloadActive(active)
    if ((await countActive(transaction)) >= activeDownloadsMax) {
      const message = `The limit of ${activeDownloadsMax} active downloads is reached.`
      throw new AppError('conflict', message, { code: 'too_many_downloads' })
    }
    const id = Bun.randomUUIDv7()
    const { userId: startedBy } = principal
    await insertDownload(transaction, { ...added, startedBy, id, files: [], startedAt: now() })
    await enqueue(deps, transaction, id)
    const download = await requireDownload(transaction, id)
    await recordDownload(transaction, principal, {
      action: task.kind === 'verify' ? 'verify' : 'start',
      after: download,
      at: now(),
    })
    return { kind: 'started', download }
  })
}

/** Queues a download for any worker; a worker that already runs it checks it again. */
export async function enqueue(
  { jobs, notifier }: InstallerContext,
  transaction: Transaction,
  id: string,
): Promise<void> {
  await jobs.add(transaction, { queue: downloadQueue, key: id, payload: { downloadId: id } })
  await notifier.notify(transaction, id)
}

/**
 * Starts to install a runtime, or returns the active download of it; null: it is installed. Throws
 * `not_found`, `conflict` (`platform_unsupported`, `too_many_downloads`).
 */
export async function startRuntime(
  deps: InstallerContext,
  principal: RequestPrincipal,
  name: string,
): Promise<Exclude<StartResult, { kind: 'installed' }> | null> {
  const runtime = deps.runtimes.list().find((one) => one.name === name)
  if (runtime === undefined) throw runtimeNotFound(name)
  const state = stateOf(runtime)
  if (state === 'installed') return null
  if (state === 'unsupported') {
    const message = `There is no ${runtime.package} for ${process.platform} on ${process.arch}.`
    throw new AppError('conflict', message, { code: 'platform_unsupported' })
  }
  const source = `packages:${runtime.package}@${runtime.version}`
  const started = await insertOrJoin(deps, principal, {
    model: downloadName(name),
    revision: runtime.version,
    bytesTotal: runtime.downloadBytes,
    task: { kind: 'runtime', runtime: name, source },
  })
  if (started.kind === 'installed') throw new Error('a download of a runtime is no model')
  return started
}

/** Starts to verify all files. Throws `not_found`, `conflict` (`download_active`). */
export async function startVerify(
  deps: InstallerContext,
  principal: RequestPrincipal,
  name: string,
): Promise<Download> {
  const model = await deps.library.find(name)
  if (model === undefined) throw modelNotFound(name)
  const active = await deps.store.query((handle) => findActive(handle, name))
  if (active?.task.kind === 'verify') return active
  if (active !== undefined) throw downloadActive(active)
  const started = await insertOrJoin(deps, principal, {
    model: name,
    revision: model.revision,
    bytesTotal: model.bytes,
    task: { kind: 'verify', source: model.source },
  })
  if (started.kind === 'installed') throw new Error('a verification installs nothing')
  return started.download
}

function joinActive(active: Download, source: Source): StartResult {
  const { task } = active
  const isSame = task.kind === 'install' && Bun.deepEquals(task.source, source)
  if (!isSame) throw downloadActive(active)
  return { kind: 'active', download: active }
}

export function downloadActive({ model, task }: Download): AppError {
  const state =
    task.kind !== 'verify' ? `being installed from ${taskSource(task)}` : 'being verified'
  return new AppError('conflict', `"${model}" is ${state}.`, { code: 'download_active' })
}

function nameTaken(model: string): AppError {
  return new AppError(
    'conflict',
    `A model from another source is installed as "${model}"; delete it or use another name.`,
    { code: 'name_taken', param: 'name' },
  )
}
