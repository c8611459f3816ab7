import type { Config } from '#config/schema.ts'
import { createChangeNotifier } from '#db/change-notifier.ts'
import type { Transport } from '#inference/transport.ts'
import type { Upstream } from '#inference/upstream.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Log } from '#telemetry/log.ts'
import { type ActionDeps, act, discard } from './actions.ts'
import { createFollowing } from './follow.ts'
import type { ModelUses } from './installed.ts'
import type { Download, Downloads, Installer, ModelLibrary } from './installer.ts'
import { createLayout, diskBytes, type Layout } from './layout.ts'
import { absentModel, createLibrary, type Library } from './library.ts'
import type { Resolve } from './sources/source.ts'
import {
  absent,
  activeMax,
  demandRow,
  isActive,
  type StartDeps,
  start,
  startVerify,
} from './start.ts'
import {
  type DownloadStore,
  downloadStore,
  findActive,
  type InstallerDatabase,
  listActive,
  listLines,
  lockModel,
} from './store.ts'
import { startSweep } from './sweep.ts'
import type { TransferFile } from './transfer/transfer.ts'
import { viewOf } from './view.ts'
import { takeUpDownloads } from './work.ts'

export type InstallerDeps = {
  settings: Omit<Config['installer'], 'folder'>
  /** Where models are installed, by this process and those that take over its work. */
  folder: string
  heartbeatMs: number
  database: InstallerDatabase
  jobs: Pick<Jobs, 'add' | 'process'>
  resolve: Resolve
  transferFile: TransferFile
  transport: Transport
  /** Those that are configured. */
  upstreams: readonly Upstream[]
  uses: ModelUses
  /** In every process, whenever what is installed has changed, here or at an upstream. */
  refreshModels: () => void
  log: Pick<Log, 'debug' | 'info' | 'warn'>
  now: () => Date
}

/** Told to every process. */
const changesChannel = 'installed-models'

/** Downloads, the work of those that any process has begun, and what is installed on this machine. */
export async function createInstaller(given: InstallerDeps): Promise<Installer> {
  const { database, folder, heartbeatMs, log, refreshModels } = given
  const layout = createLayout(folder)
  const library = createLibrary(layout, log)
  const store = downloadStore(database)
  const notifier = await createChangeNotifier(database, 'download')
  await database.listen(changesChannel, { onMessage: refreshModels, onGap: refreshModels })
  const changed = () =>
    database.notify(changesChannel, '').catch((error: unknown) => {
      log.warn('nobody could be told that the installed models have changed', { error })
    })
  const upstreams = new Map(given.upstreams.map((upstream) => [upstream.name, upstream]))
  const deps = { ...given, layout, library, store, notifier, changed, upstreams }
  takeUpDownloads(deps, given.jobs)
  const sweeping = startSweep(deps)
  const follow = createFollowing({ store, notifier, heartbeatMs })
  return {
    downloads: createDownloads(deps, follow),
    models: createModelLibrary(deps),
    async close() {
      await sweeping.stop()
      await layout.deleted()
    },
  }
}

function createDownloads(
  deps: StartDeps & ActionDeps,
  follow: ReturnType<typeof createFollowing>,
): Downloads {
  const { store } = deps
  const find = async (id: string): Promise<Download> => {
    if (!isUuid(id)) throw absent(id)
    return viewOf(await store.ask((handle) => demandRow(handle, id)))
  }
  return {
    start: (userId, wish, signal) => start(deps, userId, { wish, signal }),
    list: async () => (await store.ask((handle) => listActive(handle, activeMax))).map(viewOf),
    find,
    async lines(id, page) {
      await find(id)
      return store.ask((handle) => listLines(handle, id, page))
    },
    follow: async (id, afterSeq, signal) => follow(await find(id), afterSeq, signal),
    act: (id, action) => act(deps, id, action),
    discard: (id) => discard(deps, id),
  }
}

type LibraryDeps = StartDeps & {
  store: DownloadStore
  layout: Layout
  library: Library
  uses: ModelUses
  changed(): Promise<void>
}

function createModelLibrary(deps: LibraryDeps): ModelLibrary {
  const { library, layout, uses } = deps
  return {
    list: library.list,
    pathOf: library.pathOf,
    usesOf: uses,
    remove: (name) => remove(deps, name),
    verify: (userId, name) => startVerify(deps, userId, name),
    async usage() {
      return { ...(await layout.disk()), ...(await library.usage()) }
    },
  }
}

/** See `ModelLibrary.remove`. */
async function remove(deps: LibraryDeps, name: string): Promise<number> {
  const { store, layout, library, uses, changed } = deps
  if ((await library.find(name)) === undefined) throw absentModel(name)
  const users = await uses(name)
  if (users.length > 0) {
    const sentence = `"${name}" is in use: ${users.join(' ')}`
    throw new AppError('conflict', sentence, { code: 'model_in_use' })
  }
  const freed = await diskBytes(layout.model(name))
  await store.transact(async (transaction) => {
    await lockModel(transaction, name)
    const active = await findActive(transaction, name)
    if (active !== undefined) throw inUse(isActive(active))
    await layout.remove(layout.model(name))
  })
  await changed()
  return freed
}

function inUse({ message }: AppError): AppError {
  return new AppError('conflict', message, { code: 'model_in_use' })
}
