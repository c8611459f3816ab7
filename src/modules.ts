import { version } from '#package.json'
import { agentsModule } from './agents/module.ts'
import { apiKeysModule } from './api-keys/module.ts'
import { appGatewayModule } from './app-gateway/module.ts'
import { auditModule } from './audit/module.ts'
import { authModule } from './auth/module.ts'
import { batchesModule } from './batches/module.ts'
import { brandingModule } from './branding/module.ts'
import { clock } from './clock.ts'
import { createLiveConfig } from './config/live-config.ts'
import type { Config } from './config/schema.ts'
import { directoryModule } from './directory/module.ts'
import { edgesModule } from './edges/module.ts'
import { embeddingModule } from './embedding/module.ts'
import { filesModule } from './files/module.ts'
import { hooksModule } from './hooks/module.ts'
import { hostedToolsModule } from './hosted-tools/module.ts'
import { installerModule } from './installer/module.ts'
import { jobsModule } from './jobs/module.ts'
import { limitsModule } from './limits/module.ts'
import { modelsModule } from './models/module.ts'
import type { Apply, Foundation, Module } from './module.ts'
import { operationsModule } from './operations/module.ts'
import { startFetching } from './outbound/start-fetching.ts'
import { reloadModule } from './reload/module.ts'
import { rerankModule } from './rerank/module.ts'
import { retrievalModule } from './retrieval/module.ts'
import { sealingModule } from './sealing/module.ts'
import { sessionsModule } from './sessions/module.ts'
import { settingsModule } from './settings/module.ts'
import { createSettings } from './settings/settings.ts'
import { speakingModule } from './speaking/module.ts'
import { speechModule } from './speech/module.ts'
import { storageModule } from './storage/module.ts'
import { messagesModule } from './surfaces/messages/module.ts'
import { responsesModule } from './surfaces/responses/module.ts'
import { createMetricRegistry } from './telemetry/metrics.ts'
import { addProcessMetrics, observeEventLoop, seriesMax } from './telemetry/process-metrics.ts'
import { connectMetrics, type SupervisorChannel, scrapeProcess } from './telemetry/scrape.ts'
import { startTracing } from './telemetry/tracing/start-tracing.ts'
import { tlsModule } from './tls/module.ts'
import type { TrafficChannel } from './traffic/link.ts'
import { trafficModule } from './traffic/module.ts'
import { translationsModule } from './translations/module.ts'
import { usageModule } from './usage/module.ts'
import { consoleModule } from './web-console/module.ts'
import { webhooksModule } from './webhooks/module.ts'

/** Every module of the program, in the order in which they start. */
const list = [
  tlsModule,
  edgesModule,
  auditModule,
  authModule,
  apiKeysModule,
  directoryModule,
  sealingModule,
  sessionsModule,
  usageModule,
  agentsModule,
  limitsModule,
  hooksModule,
  modelsModule,
  embeddingModule,
  rerankModule,
  operationsModule,
  trafficModule,
  reloadModule,
  jobsModule,
  webhooksModule,
  responsesModule,
  messagesModule,
  appGatewayModule,
  speechModule,
  speakingModule,
  storageModule,
  retrievalModule,
  filesModule,
  batchesModule,
  hostedToolsModule,
  installerModule,
  settingsModule,
  translationsModule,
  brandingModule,
  consoleModule,
] as const

type ServicesOf<M> = M extends Module<never, infer Services, never> ? Services : never
type Intersection<Union> = (Union extends unknown ? (one: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never

/** The services of all modules. Features take those that they need, never all of them. */
export type Services = Foundation & Intersection<ServicesOf<(typeof list)[number]>>

/** A type error here names a module with a need that no module provides. */
export const modules: readonly Module<Services, object, Services>[] = list

export type StartedServices = Services & {
  /** Changes to a configuration in one turn of the event loop; nothing changes if a module rejects it. */
  reload(next: Config): Promise<void>
  /** Closes the modules in the reverse order of their start, then the database. */
  close(): Promise<void>
}

/** Begins the work of modules in the background, which is done by the models of these services. */
export async function beginWork(services: Services): Promise<void> {
  for (const { started } of modules) await started?.(services)
}

/** Starts every module; `given` comes from the process, or from a test. */
export async function startServices(
  initial: Config,
  given: Pick<Foundation, 'log' | 'draining' | 'database'> & Partial<Pick<Foundation, 'reloads'>>,
  /** Absent where a worker runs alone, as in development. */
  supervisor?: SupervisorChannel,
  trafficChannel: TrafficChannel | null = null,
): Promise<StartedServices> {
  await startFetching(fetch)
  const { log, database } = given
  const { now } = clock
  const live = createLiveConfig(initial)
  const { config } = live
  const settings = await createSettings({ config: initial, database, log, now })
  const metrics = createMetricRegistry({ seriesMax })
  addProcessMetrics(metrics, version)
  const link = supervisor === undefined ? null : connectMetrics(metrics, supervisor)
  const tracing = await startTracing({
    config: initial.tracing,
    log,
    metrics,
    version,
    now,
    fetch,
  })
  const services: Foundation = {
    reloads: { reload: () => Promise.resolve({ outcome: 'stopping' }) },
    ...given,
    config,
    settings,
    metrics,
    tracer: tracing?.tracer ?? null,
    trafficChannel,
    scrapeMetrics: link?.scrape ?? scrapeProcess(metrics),
    clock,
    now,
    fetch,
  }
  const closers: (() => void | Promise<void>)[] = [
    () => link?.report(),
    () => tracing?.close(),
    () => database.close(),
    () => settings.close(),
    observeEventLoop(metrics),
  ]
  const reloads: ((next: Config, before: Config) => Apply | Promise<Apply>)[] = [settings.reload]
  for (const { start } of modules) {
    // A module needs only services of modules before it, which are complete by now.
    const started = await start?.(services as Services)
    if (started === undefined) continue
    Object.assign(services, started.services)
    if (started.close !== undefined) closers.push(started.close)
    if (started.reload !== undefined) reloads.push(started.reload)
  }
  return {
    ...(services as Services),
    async reload(next) {
      const before = live.current()
      const applies: Apply[] = []
      for (const reload of reloads) applies.push(await reload(next, before))
      live.replace(next)
      for (const apply of applies) apply()
    },
    async close() {
      for (const close of closers.toReversed()) await close()
    },
  }
}
