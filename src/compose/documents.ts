import { createShares } from '#files/shares/shares.ts'
import { startFileSweep } from '#files/sweep.ts'
import { createFiles } from '#files/tree.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { createCollections } from '#retrieval/collections/create-collections.ts'
import { createExtraction } from '#retrieval/extraction/extraction.ts'
import { createChunkTables } from '#retrieval/index/tables.ts'
import { createIngest } from '#retrieval/ingest/ingest.ts'
import { createReindexes } from '#retrieval/reindex/create-reindexes.ts'
import { createSearch } from '#retrieval/search/create-search.ts'
import { retrievalSettings } from '#settings/live-config.ts'
import { openStorage } from '#storage/open-storage.ts'
import type { Models } from './models.ts'
import type { World } from './world.ts'

/** Files, and what is found in them. */
export async function composeDocuments(
  world: World,
  { agents, embedders, rerankers }: Pick<Models, 'agents' | 'embedders' | 'rerankers'>,
  jobs: Jobs,
) {
  const { config, log, database, clock } = world
  const { now } = clock
  const settings = retrievalSettings(world.settings)
  const storage = await openStorage(config, now)
  const chunkTables = createChunkTables({ database, jobs, now })
  const collections = createCollections({
    database,
    chunkTables,
    embedders,
    jobs,
    settings,
    now,
    limits: config.retrieval,
    usedByAgents: agents.nameCollection,
  })
  const kept = { database, storage, settings: config.files, hooks: collections.fileHooks, now }
  const extraction = createExtraction({ limits: config.retrieval, log })
  const ingest = createIngest({
    database,
    jobs,
    storage,
    embedders,
    chunkTables,
    extraction,
    log,
    now,
  })
  const reindexes = await createReindexes({
    database,
    jobs,
    embedders,
    chunkTables,
    ingest,
    log,
    now,
    settings: config.retrieval,
  })
  const sweep = startFileSweep({ ...kept, log })
  return {
    storage,
    collections,
    ingest,
    reindexes,
    files: createFiles(kept),
    shares: createShares({ database, now }),
    search: createSearch({ database, embedders, rerankers, settings, log }),
    async close() {
      await sweep.stop()
      await ingest.close()
    },
  }
}
