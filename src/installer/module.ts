import type { Transport } from '#inference/transport.ts'
import { installRuntime } from '#install-packages.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { localRuntimes } from '#local-runtimes.ts'
import type { Catalogue, ConfiguredUpstream } from '#models/catalogue.ts'
import { type Foundation, module } from '#module.ts'
import { resolveHost } from '#outbound/resolve.ts'
import { createInstaller, type Installer } from './create-installer.ts'
import { installerEndpoints } from './endpoints.ts'
import type { ModelUses } from './library.ts'
import { createSources } from './sources/source.ts'
import { createTransfer } from './transfer/transfer.ts'

type Needs = Foundation & {
  jobs: Jobs
  transport: Transport
  upstreams: () => readonly ConfiguredUpstream[]
  catalogue: Catalogue
  usesOfModel: ModelUses
  modelsFolder: string
}

/** Downloads models to this machine, where the llama adapter finds them. */
export const installerModule = module({
  name: 'installer',
  tags: { 'Model installer': 'Downloading models to this machine.' },
  async start({ config, log, database, now, fetch, ...models }: Needs) {
    const settings = config.installer
    const outside = { fetch, resolve: resolveHost }
    const installer = await createInstaller({
      settings,
      database,
      jobs: models.jobs,
      transport: models.transport,
      log,
      now,
      folder: models.modelsFolder,
      heartbeatMs: config.stream.heartbeatMs,
      resolve: createSources(settings, outside),
      transferFile: createTransfer(settings, outside),
      findUpstream: (name) =>
        models.upstreams().find(({ upstream }) => upstream.name === name)?.upstream,
      uses: models.usesOfModel,
      runtimes: { list: () => localRuntimes(config), install: installRuntime },
      refreshModels: () => void models.catalogue.refresh(),
    })
    return { services: { installer }, close: () => installer.close() }
  },
  endpoints: (services: Foundation & { installer: Installer }) => installerEndpoints(services),
})
