import { join } from 'node:path'
import { repeat } from '#lib/repeat.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Log } from '#telemetry/log.ts'
import { type Layout, namesIn } from './layout.ts'
import type { Library } from './library.ts'
import { type DownloadStore, findActive, forgetDownloads, knownModels, lockModel } from './store.ts'

type SweepDeps = {
  store: DownloadStore
  layout: Layout
  library: Pick<Library, 'find'>
  settings: { readonly keepTerminalS: number }
  log: Pick<Log, 'warn'>
  now: () => Date
}

const everyMs = 60_000

/** Forgets downloads that are long over, and then what they left on the disk of this machine. */
export function startSweep(deps: SweepDeps) {
  const sweeping = repeat(() => sweep(deps), {
    everyMs,
    log: deps.log,
    failed: 'what downloads have left cannot be removed',
  })
  sweeping.soon()
  return sweeping
}

async function sweep(deps: SweepDeps): Promise<void> {
  const { store, layout, settings, now } = deps
  const before = new Date(now().getTime() - settings.keepTerminalS * 1000)
  await store.ask((handle) => forgetDownloads(handle, before))
  await layout.removeLeftovers()
  const partial = await layout.partialModels()
  const known = await store.ask((handle) => knownModels(handle, partial))
  for (const model of partial.filter((name) => !known.has(name))) {
    await whileInactive(deps, model, () => layout.remove(layout.partial(model)))
  }
  for (const model of await layout.models()) {
    await whileInactive(deps, model, () => removeUnnamed(deps, model))
  }
}

/**
 * Versions that no `model.json` names are those of downloads that did not come to their end. What
 * somebody else has put there is left alone, and so is everything where the record makes no sense.
 */
async function removeUnnamed({ layout, library }: SweepDeps, model: string): Promise<void> {
  const installed = await library.find(model)
  const names = await namesIn(layout.model(model))
  if (installed === undefined && names.includes('model.json')) return
  const named = new Set(installed?.files.map(({ path }) => path.slice(0, path.indexOf('/'))))
  for (const name of names.filter((one) => isUuid(one) && !named.has(one))) {
    await layout.remove(join(layout.model(model), name))
  }
}

/** Nobody begins to bring the model meanwhile. */
async function whileInactive(
  { store }: SweepDeps,
  model: string,
  work: () => Promise<void>,
): Promise<void> {
  await store.transact(async (transaction) => {
    await lockModel(transaction, model)
    if ((await findActive(transaction, model)) === undefined) await work()
  })
}
