import type { Config } from '#config/schema.ts'
import { type ChangeNotifier, createChangeNotifier } from '#db/change-notifier.ts'
import type { Transport } from '#inference/transport.ts'
import type { Upstream } from '#inference/upstream.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Log } from '#telemetry/log.ts'
import { type Download, type DownloadUpdate, type Installer, isTerminal } from './installer.ts'
import { createLayout, diskBytes, type Layout } from './layout.ts'
import { createLibrary, type Library, type ModelUses, modelNotFound } from './library.ts'
import type { ResolveSource } from './sources/source.ts'
import { activeDownloadsMax, downloadActive, startInstall, startVerify } from './start.ts'
import {
  createDownloadStore,
  type DownloadStore,
  downloadNotFound,
  findActive,
  type InstallerDatabase,
  listActive,
  listLines,
  lockModel,
  requireDownload,
  viewOf,
} from './store.ts'
import { startSweep } from './sweep.ts'
import type { TransferFile } from './transfer/transfer.ts'
import { act, discard } from './transitions.ts'
import { processDownloads } from './work.ts'

type InstallerDeps = {
  settings: Omit<Config['installer'], 'folder'>
  /** Where models are installed; shared by all workers that run downloads. */
  folder: string
  heartbeatMs: number
  database: InstallerDatabase
  jobs: Pick<Jobs, 'add' | 'process'>
  resolve: ResolveSource
  transferFile: TransferFile
  transport: Transport
  /** The configured upstreams. */
  upstreams: readonly Upstream[]
  uses: ModelUses
  /** Called on every worker when the installed models change, here or at an upstream. */
  refreshModels: () => void
  log: Pick<Log, 'debug' | 'info' | 'warn'>
  now: () => Date
}

const modelsChannel = 'installed-models'

/** Installs models on this machine: downloads, their work, and the library of installed models. */
export async function createInstaller(given: InstallerDeps): Promise<Installer> {
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
  const upstreams = new Map(given.upstreams.map((upstream) => [upstream.name, upstream]))
  const deps = { ...given, layout, library, store, notifier, notifyModelsChanged, upstreams }
  processDownloads(deps, given.jobs)
  const sweeping = startSweep(deps)
  const follow = createFollow({ store, notifier, heartbeatMs })
  const find = async (id: string): Promise<Download> => {
    if (!isUuid(id)) throw downloadNotFound(id)
    return viewOf(await store.query((handle) => requireDownload(handle, id)))
  }
  return {
    downloads: {
      start: (userId, request, signal) => startInstall(deps, userId, request, signal),
      list: async () =>
        (await store.query((handle) => listActive(handle, activeDownloadsMax))).map(viewOf),
      find,
      async lines(id, page) {
        await find(id)
        return store.query((handle) => listLines(handle, id, page))
      },
      follow: async (id, afterSeq, signal) => follow(await find(id), afterSeq, signal),
      act: (id, action) => act(deps, id, action),
      discard: (id) => discard(deps, id),
    },
    models: {
      list: library.list,
      pathOf: library.pathOf,
      usesOf: uses,
      remove: (name) => removeModel(deps, name),
      verify: (userId, name) => startVerify(deps, userId, name),
      usage: async () => ({ ...(await layout.disk()), ...(await library.usage()) }),
    },
    async close() {
      await sweeping.stop()
      await layout.deleted()
    },
  }
}

/** Each follower reads the record twice a second. */
const followersMax = 64
const linesPerUpdateMax = 500

/** See `Downloads.follow`. */
function createFollow(deps: {
  store: DownloadStore
  notifier: Pick<ChangeNotifier, 'subscribe'>
  heartbeatMs: number
}) {
  const { store, notifier, heartbeatMs } = deps
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
          download: viewOf(await requireDownload(handle, id)),
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

/** See `ModelLibrary.remove`. */
async function removeModel(
  deps: {
    store: DownloadStore
    layout: Layout
    library: Library
    uses: ModelUses
    notifyModelsChanged(): Promise<void>
  },
  name: string,
): Promise<number> {
  const { store, layout, library, uses, notifyModelsChanged } = deps
  if ((await library.find(name)) === undefined) throw modelNotFound(name)
  const users = await uses(name)
  if (users.length > 0) throw modelInUse(`"${name}" is in use: ${users.join(' ')}`)
  const freed = await diskBytes(layout.model(name))
  await store.transact(async (transaction) => {
    await lockModel(transaction, name)
    const active = await findActive(transaction, name)
    if (active !== undefined) throw modelInUse(downloadActive(active).message)
    await layout.remove(layout.model(name))
  })
  await notifyModelsChanged()
  return freed
}

function modelInUse(message: string): AppError {
  return new AppError('conflict', message, { code: 'model_in_use' })
}
