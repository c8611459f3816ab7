import { recordChange } from '#db/audit-entries.ts'
import { createChangeNotifier } from '#db/change-notifier.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import {
  type DownloadAction,
  type DownloadUpdate,
  type InstallerContext,
  type InstallRequest,
  isTerminal,
} from './installer.ts'
import { createLayout, diskBytes } from './layout.ts'
import { createLibrary, modelNotFound } from './library.ts'
import { downloadName } from './runtime.ts'
import {
  activeDownloadsMax,
  downloadActive,
  startInstall,
  startRuntime,
  startVerify,
} from './start.ts'
import {
  createDownloadStore,
  type Download,
  downloadNotFound,
  findActive,
  type InstallerDatabase,
  listActive,
  listLines,
  lockModel,
  requireDownload,
} from './store.ts'
import { startSweep } from './sweep.ts'
import { act, discard } from './transitions.ts'
import { processDownloads } from './work.ts'

type InstallerDeps = Omit<
  InstallerContext,
  'layout' | 'library' | 'store' | 'notifier' | 'notifyModelsChanged'
> & {
  /** Where models are installed; shared by all workers that run downloads. */
  folder: string
  heartbeatMs: number
  database: InstallerDatabase
  /** Called on every worker when the installed models change, here or at an upstream. */
  refreshModels: () => void
}

export type Installer = Awaited<ReturnType<typeof createInstaller>>

const modelsChannel = 'installed-models'

/** Installs models on this machine: downloads, their work, and the library of installed models. */
export async function createInstaller(given: InstallerDeps) {
  const { database, folder, heartbeatMs, log, refreshModels, uses } = given
  const layout = createLayout(folder)
  const library = createLibrary(layout, log)
  const store = createDownloadStore(database)
  const notifier = await createChangeNotifier(database, 'download')
  await database.listen(modelsChannel, { onMessage: refreshModels, onGap: refreshModels })
  const notifyModelsChanged = () =>
    database.notify(modelsChannel, '').catch((error: unknown) => {
      log.warn('model change notification failed', { error })
    })
  const deps: InstallerContext = {
    ...given,
    layout,
    library,
    store,
    notifier,
    notifyModelsChanged,
  }
  processDownloads(deps)
  const sweeping = startSweep(deps)
  const follow = createFollow(deps, heartbeatMs)
  /** Finds a finished download too, until it expires. */
  const find = async (id: string): Promise<Download> => {
    if (!isUuid(id)) throw downloadNotFound(id)
    return store.query((handle) => requireDownload(handle, id))
  }
  return {
    /** Methods that take an id throw `not_found` for an unknown one. */
    downloads: {
      start: (principal: RequestPrincipal, request: InstallRequest, signal: AbortSignal) =>
        startInstall(deps, principal, request, signal),
      /** Active downloads, oldest first. */
      list: () => store.query((handle) => listActive(handle, activeDownloadsMax)),
      find,
      /** Empty for a finished download. */
      async lines(id: string, page: { afterSeq: number; limit: number }) {
        await find(id)
        return store.query((handle) => listLines(handle, id, page))
      },
      /** The current state, then every change; at least one update per heartbeat; ends when finished. */
      follow: async (id: string, afterSeq: number, signal: AbortSignal) =>
        follow(await find(id), afterSeq, signal),
      act: (principal: RequestPrincipal, id: string, action: DownloadAction) =>
        act(deps, { principal, id, action }),
      discard: (principal: RequestPrincipal, id: string) => discard(deps, { principal, id }),
    },
    runtimes: {
      list: () => given.runtimes.list(),
      start: (principal: RequestPrincipal, name: string) => startRuntime(deps, principal, name),
      /** The active download of a runtime. */
      activeDownload: (name: string) =>
        store.query((handle) => findActive(handle, downloadName(name))),
      hasModel: async (name: string) => (await library.find(name)) !== undefined,
    },
    models: {
      list: library.list,
      pathOf: library.pathOf,
      usesOf: uses,
      remove: (principal: RequestPrincipal, name: string) => removeModel(deps, principal, name),
      verify: (principal: RequestPrincipal, name: string) => startVerify(deps, principal, name),
      /** In bytes: of the disk, by installed models, and by partially downloaded files. */
      usage: async () => ({ ...(await layout.disk()), ...(await library.usage()) }),
    },
    async close(): Promise<void> {
      await sweeping.stop()
      await layout.deleted()
    },
  }
}

/** Each follower reads the record twice a second. */
const followersMax = 64
const linesPerUpdateMax = 500

function createFollow({ store, notifier }: InstallerContext, heartbeatMs: number) {
  let followers = 0

  async function* follow(
    { id }: Download,
    afterSeq: number,
    signal: AbortSignal,
  ): AsyncGenerator<DownloadUpdate, void, void> {
    const subscription = notifier.subscribe(id)
    followers += 1
    try {
      for (let seq = afterSeq; !signal.aborted; ) {
        const update = await store.query(async (handle) => ({
          download: await requireDownload(handle, id),
          lines: await listLines(handle, id, { afterSeq: seq, limit: linesPerUpdateMax }),
        }))
        yield update
        if (isTerminal(update.download.status)) return
        seq = update.lines.at(-1)?.seq ?? seq
        await subscription.next(heartbeatMs, signal)
      }
    } finally {
      followers -= 1
      subscription.close()
    }
  }

  return (download: Download, afterSeq: number, signal: AbortSignal) => {
    if (followers < followersMax) return follow(download, afterSeq, signal)
    throw new AppError('too_many_streams', 'Too many clients follow downloads; retry later.', {
      retryAfterS: 1,
    })
  }
}

/** Returns the freed bytes. Throws `not_found`, `conflict` (`model_in_use`). */
async function removeModel(
  { store, layout, library, uses, notifyModelsChanged, now }: InstallerContext,
  principal: RequestPrincipal,
  name: string,
): Promise<number> {
  const found = await library.find(name)
  if (found === undefined) throw modelNotFound(name)
  const users = await uses(name)
  if (users.length > 0) throw modelInUse(`"${name}" is in use: ${users.join(' ')}`)
  const freed = await diskBytes(layout.model(name))
  await store.transact(async (transaction) => {
    await lockModel(transaction, name)
    const active = await findActive(transaction, name)
    if (active !== undefined) throw modelInUse(downloadActive(active).message)
    const before = { name, source: found.source, bytes: found.bytes }
    const entry = { kind: 'model', id: name, action: 'delete', before, at: now() } as const
    await recordChange(transaction, principal, entry)
    await layout.remove(layout.model(name))
  })
  await notifyModelsChanged()
  return freed
}

function modelInUse(message: string): AppError {
  return new AppError('conflict', message, { code: 'model_in_use' })
}
