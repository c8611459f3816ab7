import { join } from 'node:path'
import { repeat } from '#lib/repeat.ts'
import { isUuid } from '#lib/uuid.ts'
import type { InstallerContext } from './installer.ts'
import { namesIn } from './layout.ts'
import { deleteDownloads, findActive, lockModel, modelsWithDownload } from './store.ts'

const everyMs = 60_000

/** Deletes expired downloads, and then their data on the disk of this machine. */
export function startSweep(deps: InstallerContext) {
  const sweeping = repeat(() => sweep(deps), {
    everyMs,
    log: deps.log,
    failed: 'download sweep failed',
  })
  sweeping.soon()
  return sweeping
}

async function sweep(deps: InstallerContext): Promise<void> {
  const { store, layout, settings, now } = deps
  const before = new Date(now().getTime() - settings.keepTerminalS * 1000)
  await store.query((handle) => deleteDownloads(handle, before))
  await layout.removeLeftovers()
  const partial = await layout.partialModels()
  const known = await store.query((handle) => modelsWithDownload(handle, partial))
  for (const model of partial.filter((name) => !known.has(name))) {
    await whileInactive(deps, model, () => layout.remove(layout.partial(model)))
  }
  for (const model of await layout.models()) {
    await whileInactive(deps, model, () => removeUnusedVersions(deps, model))
  }
}

/**
 * Deletes versions that `model.json` does not name: those of unfinished downloads. Leaves files of
 * other programs, and everything beside an invalid record.
 */
async function removeUnusedVersions(
  { layout, library }: InstallerContext,
  model: string,
): Promise<void> {
  const installed = await library.find(model)
  const names = await namesIn(layout.model(model))
  if (installed === undefined && names.includes('model.json')) return
  const used = new Set(installed?.files.map(({ path }) => path.slice(0, path.indexOf('/'))))
  for (const name of names.filter((one) => isUuid(one) && !used.has(one))) {
    await layout.remove(join(layout.model(model), name))
  }
}

/** Runs under the lock of the model, so that no download of it starts. */
async function whileInactive(
  { store }: InstallerContext,
  model: string,
  run: () => Promise<void>,
): Promise<void> {
  await store.transact(async (transaction) => {
    await lockModel(transaction, model)
    if ((await findActive(transaction, model)) === undefined) await run()
  })
}
