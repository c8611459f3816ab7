import { mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { clock } from '#clock.ts'
import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { resolveHost } from '#outbound/resolve.ts'
import { install } from './install.ts'
import { createLayout, modelsFolder } from './layout.ts'
import { createLibrary, type InstalledModel } from './library.ts'
import { isCurrent, isFromSource } from './names.ts'
import { bytesCompletedOf, createFileStates, type InstallAttempt } from './progress.ts'
import {
  createSources,
  type RemoteFile,
  type ResolveSource,
  type Source,
} from './sources/source.ts'
import { createTransfer } from './transfer/transfer.ts'

export type InstallNow = {
  /** The name to install the model under. */
  readonly model: string
  readonly source: Exclude<Source, { kind: 'upstream' }>
  /** Selects among the listed files; by default all of them. */
  readonly choose?: (files: readonly RemoteFile[]) => readonly RemoteFile[]
}

export type InstallView = {
  log(level: 'info' | 'warn' | 'error', message: string): void
  /** `total` is null if the source does not tell it. */
  progress(bytes: number, total: number | null): void
}

/**
 * Somebody waits for a command: a hub that cannot be reached is reported within seconds. The transfer of a
 * file is retried as often as the settings say.
 */
const resolveAttemptsMax = 4
/** Not the folder of a gateway's downloads, which deletes what its database does not know. */
const partialsName = '.partial-commands'

/**
 * Installs a model without a database, for the commands: it works beside a running gateway and without
 * one. Continues what an interrupted command left. Throws the errors of `ResolveSource` and
 * `TransferFile`, and `conflict` (`name_taken`, `download_active`).
 */
export async function installNow(
  config: Pick<Config, 'data' | 'installer'>,
  { model, source, choose = (files) => files }: InstallNow,
  { view, signal }: { view: InstallView; signal: AbortSignal },
): Promise<InstalledModel> {
  const settings = config.installer
  const outside = { fetch, resolve: resolveHost }
  const layout = createLayout(modelsFolder(config), partialsName)
  const library = createLibrary(layout, { warn: (message) => view.log('warn', message) })
  const list = createSources(settings, outside)
  const resolve: ResolveSource = async (given, context) => {
    const resolved = await list(given, context)
    return { ...resolved, files: choose(resolved.files) }
  }
  const context = { signal, logLine: view.log, allowsUnsafe: false }
  const installed = await library.find(model)
  if (installed !== undefined) {
    if (!isFromSource(installed, source)) throw nameTaken(model)
    if (isCurrent(installed, await resolve(source, context))) return installed
  }
  const release = await lock(layout.partials, model)
  try {
    const deps = {
      settings: {
        ...settings,
        attemptsMax: Math.min(settings.attemptsMax, resolveAttemptsMax),
      },
      layout,
      library,
      resolve,
      transferFile: createTransfer(settings, outside),
      now: clock.now,
    }
    const row = {
      // Not a UUID: a gateway's sweep deletes such versions until their record is complete.
      id: `command-${Bun.randomUUIDv7()}`,
      model,
      files: [],
      status: 'resolving',
      revision: null,
    } as const
    await install(
      deps,
      { row, progress: createProgress(view), signal },
      { kind: 'install', source, allowsUnsafe: false },
    )
  } finally {
    await release()
    await layout.deleted()
  }
  const complete = await library.find(model)
  if (complete === undefined) throw new Error(`"${model}" was installed but is not in the library`)
  return complete
}

function createProgress(view: InstallView): InstallAttempt['progress'] {
  const states = createFileStates([])
  let total: number | null = null
  const show = () => view.progress(bytesCompletedOf(states.list()), total)
  return {
    logLine: view.log,
    files: states.list,
    setFiles(files, { bytesTotal = null }) {
      states.replace(files)
      total = bytesTotal
      show()
    },
    setFile(path, given) {
      states.change(path, given)
      show()
    },
    setStatus() {},
    async flush() {},
  }
}

/** One command at a time may write the partial files of a model. */
async function lock(folder: string, model: string): Promise<() => Promise<void>> {
  await mkdir(folder, { recursive: true })
  const path = join(folder, `${encodeURIComponent(model)}.lock`)
  const claim = async () => {
    const file = await open(path, 'wx')
    await file.writeFile(String(process.pid))
    await file.close()
  }
  await claim().catch(async () => {
    const owner = Number(await readFile(path, 'utf8').catch(() => ''))
    if (isRunning(owner)) {
      throw new AppError('conflict', `"${model}" is being installed by process ${owner}.`, {
        code: 'download_active',
      })
    }
    await rm(path, { force: true })
    await claim()
  })
  return () => rm(path, { force: true })
}

function isRunning(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

function nameTaken(model: string): AppError {
  return new AppError('conflict', `A model from another source is installed as "${model}".`, {
    code: 'name_taken',
  })
}
