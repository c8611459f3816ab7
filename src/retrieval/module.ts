import type { Agents } from '#agents/store.ts'
import type { Auth } from '#auth/auth.ts'
import type { Embedders } from '#embedding/embedder.ts'
import type { Shares } from '#files/shares/shares.ts'
import type { Files } from '#files/tree.ts'
import type { Jobs } from '#jobs/jobs.ts'
import { repeat } from '#lib/repeat.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import { type Foundation, module } from '#module.ts'
import type { Rerankers } from '#rerank/reranker.ts'
import type { Storage } from '#storage/storage.ts'
import { type Collections, createCollections } from './collections/create-collections.ts'
import { collectionEndpoints, collectionShareEndpoints } from './collections/endpoints.ts'
import { createDocumentReader } from './extraction/document-reader.ts'
import { createExtraction } from './extraction/extraction.ts'
import { createFileSearch } from './file-search/file-search.ts'
import { createChunkTables } from './index/tables.ts'
import { ingestEndpoints } from './ingest/endpoints.ts'
import { createIngest, type Ingest } from './ingest/ingest.ts'
import { createReindexes, type Reindexes } from './reindex/create-reindexes.ts'
import { reindexEndpoints } from './reindex/endpoints.ts'
import { createSearch } from './search/create-search.ts'
import { searchEndpoints } from './search/endpoints.ts'
import type { Search } from './search/search.ts'
import { createServiceDesk } from './service-desk.ts'
import { vectorStoreEndpoints } from './vector-stores/endpoints.ts'

type Needs = Foundation & {
  agents: Agents
  modelResolver: Pick<ModelResolver, 'firstOpenModel'>
  embedders: Embedders
  rerankers: Rerankers
  jobs: Jobs
  storage: Storage
}

type EndpointNeeds = Foundation & {
  auth: Auth
  files: Files
  shares: Shares
  collections: Collections
  ingest: Ingest
  reindexes: Reindexes
  search: Search
}

const expireEveryMs = 60_000

/** Collections of files, their passages, and search. */
export const retrievalModule = module({
  name: 'retrieval',
  tags: {
    Collections: 'Searchable sets of files.',
    'Vector stores': 'Collections in the shape of the OpenAI packages.',
    Embeddings: 'Moving collections to another embedding model without downtime.',
  },
  async start(needs: Needs) {
    const { config, log, database, agents, modelResolver, jobs, now } = needs
    const chunkTables = createChunkTables({ database, jobs, now })
    const collections = createCollections({
      ...needs,
      chunkTables,
      limits: config.retrieval,
      usedByAgents: agents.isCollectionUsed,
    })
    const serviceDesk = createServiceDesk({
      agents,
      collections,
      firstModel: modelResolver.firstOpenModel,
    })
    const expiry = repeat(collections.expire, {
      everyMs: expireEveryMs,
      log,
      failed: 'expiry of vector stores failed',
    })
    const extraction = createExtraction({ limits: config.retrieval, log })
    const ingest = createIngest({ ...needs, chunkTables, extraction })
    const reindexes = await createReindexes({
      ...needs,
      chunkTables,
      ingest,
      settings: config.retrieval,
    })
    const search = createSearch(needs)
    const fileSearch = createFileSearch({ search, log })
    // Requests do not wait for the files of collections.
    const documents = createDocumentReader(createExtraction({ limits: config.retrieval, log }))
    return {
      services: { collections, ingest, reindexes, search, fileSearch, documents, serviceDesk },
      async close() {
        await expiry.stop()
        await ingest.close()
      },
    }
  },
  endpoints: (services: EndpointNeeds) => [
    ...ingestEndpoints(services),
    ...collectionEndpoints(services),
    ...collectionShareEndpoints(services),
    ...searchEndpoints(services),
    ...vectorStoreEndpoints(services),
    ...reindexEndpoints(services),
  ],
})
