import { createInstaller } from '#installer/create-installer.ts'
import { createSources } from '#installer/sources/create-sources.ts'
import { createTransfer } from '#installer/transfer/create-transfer.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { resolveHost } from '#outbound/resolve.ts'
import type { Models } from './models.ts'
import type { World } from './world.ts'

/** Bringing models onto this machine, where `llama` finds them. */
export function composeInstaller(
  { config, log, database, clock, fetch }: World,
  { modelsFolder, transport, upstreams, llama, catalogue }: Models,
  jobs: Jobs,
) {
  const settings = config.installer
  const outside = { fetch, resolve: resolveHost }
  return createInstaller({
    settings,
    database,
    jobs,
    transport,
    log,
    now: clock.now,
    folder: modelsFolder,
    heartbeatMs: config.stream.heartbeatMs,
    resolve: createSources(settings, outside),
    transferFile: createTransfer(settings, outside),
    upstreams: upstreams.map(({ upstream }) => upstream),
    uses: llama.usesOf,
    refreshModels: () => void catalogue.refresh(),
  })
}
