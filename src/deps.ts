import type { Database } from '#db/client.ts'
import { clock } from './clock.ts'
import { composeDocuments } from './compose/documents.ts'
import { composeInstaller } from './compose/installer.ts'
import { composeModels } from './compose/models.ts'
import { composePeople } from './compose/people.ts'
import { composePortal } from './compose/portal.ts'
import { composeSpeech } from './compose/speech.ts'
import { composeStored } from './compose/stored.ts'
import type { World } from './compose/world.ts'
import type { Config } from './config/schema.ts'
import { createHostedTools } from './hosted-tools/hosted-tools.ts'
import { createOpenSockets } from './http/open-sockets.ts'
import { createJobs } from './jobs/jobs.ts'
import { resolveHost } from './outbound/resolve.ts'
import { startFetching } from './outbound/start-fetching.ts'
import { createFileSearch } from './retrieval/file-search/file-search.ts'
import { withSettings } from './settings/live-config.ts'
import { createSettings } from './settings/settings.ts'
import { createGatewayMetrics } from './telemetry/gateway-metrics.ts'
import type { Log } from './telemetry/log.ts'

/** The world, named once. Features take the members that they need, never the whole of it. */
export type Deps = Awaited<ReturnType<typeof createDeps>>

/** What is given from outside: the process, or a test. */
export type Given = { log: Log; draining: () => boolean; database: Database }

/** Makes everything that a process serves with; `close` ends it in the order that work needs it. */
export async function createDeps(configured: Config, given: Given) {
  await startFetching(fetch)
  const world = await openWorld(configured, given)
  const { config, log, database, settings, metrics } = world
  const people = await composePeople(world)
  const models = composeModels(world)
  const stored = await composeStored(world)
  const speech = await composeSpeech(world)
  const jobs = await createJobs({ database, log })
  const documents = await composeDocuments(world, models, jobs)
  const installer = await composeInstaller(world, models, jobs)
  const portal = await composePortal(world)
  const sockets = createOpenSockets()
  const fileSearch = createFileSearch({ search: documents.search, log })
  metrics.watch({
    generationsRunning: models.generations.running,
    responsesRunning: stored.runs.running,
    socketsOpen: sockets.count,
    socketsBusy: sockets.busy,
    speech: speech.speech.gauges,
    jobs: jobs.count,
  })
  return {
    ...world,
    ...people,
    ...models,
    ...stored,
    ...speech,
    ...documents,
    ...portal,
    hostedTools: createHostedTools({ config, fetch, resolve: resolveHost, fileSearch }),
    installer,
    sockets,
    async close() {
      metrics.close()
      await speech.close()
      await documents.close()
      await jobs.close()
      await installer.close()
      await stored.runs.close()
      await models.close()
      await people.close()
      await settings.close()
      await database.close()
    },
  }
}

async function openWorld(configured: Config, given: Given): Promise<World> {
  const { log, database } = given
  const settings = await createSettings({ config: configured, database, log, now: clock.now })
  const config = withSettings(configured, settings)
  const metrics = createGatewayMetrics({ worker: String(process.pid) })
  return { ...given, config, settings, metrics, clock, fetch }
}
