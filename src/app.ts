import { Elysia } from 'elysia'
import { agentEndpoints } from './agents/endpoints.ts'
import type { Endpoint } from './api/endpoint.ts'
import { mountEndpoints } from './api/mount.ts'
import { auditRoutes } from './audit/routes.ts'
import { apiKeyRoutes } from './auth/routes.ts'
import { brandingRoutes } from './branding/routes.ts'
import type { Deps } from './deps.ts'
import { directoryRoutes } from './directory/routes.ts'
import { describeEndpoint } from './docs/describe-endpoint.ts'
import { docsRoutes } from './docs/routes.ts'
import { embeddingRoutes } from './embedding/routes.ts'
import { downloadRoutes } from './files/content/download-routes.ts'
import { uploadRoutes } from './files/content/upload-routes.ts'
import { listingRoutes } from './files/listing/routes.ts'
import { fileRoutes, folderRoutes } from './files/routes.ts'
import { fileShareRoutes, principalRoutes } from './files/shares/routes.ts'
import { healthRoutes } from './http/health.ts'
import { metricsRoutes } from './http/metrics-routes.ts'
import { requestLifecycle } from './http/request-lifecycle.ts'
import { installerRoutes } from './installer/routes.ts'
import { newId } from './lib/id.ts'
import { modelRoutes } from './models/routes.ts'
import { rerankRoutes } from './rerank/routes.ts'
import {
  collectionRoutes,
  collectionShareRoutes,
  fileMembershipRoutes,
} from './retrieval/collections/routes.ts'
import { ingestRoutes } from './retrieval/ingest/routes.ts'
import { reindexRoutes } from './retrieval/reindex/routes.ts'
import { searchRoutes } from './retrieval/search/routes.ts'
import { vectorStoreRoutes } from './retrieval/vector-stores/routes.ts'
import { retrievalSettings } from './settings/live-config.ts'
import { settingsRoutes } from './settings/routes.ts'
import { speechSocket } from './speech/routes.ts'
import { transcriptionRoutes } from './speech/transcriptions/routes.ts'
import { compatModelRoutes } from './surfaces/messages/model-routes.ts'
import { messageProbes, messageRoutes } from './surfaces/messages/routes.ts'
import { createMessageTurns } from './surfaces/messages/turn.ts'
import { compactRoutes } from './surfaces/responses/compact-routes.ts'
import { conversationRoutes } from './surfaces/responses/conversation-routes.ts'
import { responsesRoutes } from './surfaces/responses/routes.ts'
import { storedResponseRoutes } from './surfaces/responses/stored-routes.ts'
import { createTurns } from './surfaces/responses/turn.ts'
import { responsesSocket, socketSettings } from './surfaces/responses/websocket.ts'
import { translationRoutes } from './translations/routes.ts'

/** The table of contents of the product. */
export function buildApp(deps: Deps) {
  const { auth, config, conversations, draining, log, modelResolver, responses, runs } = deps
  const { now } = deps.clock
  const { findItems, listInputItems } = responses
  const history = { findItems, chain: responses.chain, conversationItems: conversations.items }
  const turns = createTurns({ ...deps, history, now })
  const app =
    // Elysia would look for the path behind the first eleven characters of a URL: `http://gw/v1/…`
    // is shorter than it thinks that an origin can be.
    new Elysia({ handler: { standardHostname: false }, websocket: socketSettings(config) })
      .use(requestLifecycle({ log, newRequestId: () => newId('req_'), draining }))
      .use(healthRoutes({ draining }))
      .use(metricsRoutes(deps))
      .use(apiKeyRoutes({ auth, config, now }))
      .use(directoryRoutes({ ...deps, now }))
      .use(auditRoutes(deps))
      .use(modelRoutes({ auth, modelResolver }))
      .use(embeddingRoutes(deps))
      .use(rerankRoutes({ ...deps, settings: retrievalSettings(deps.settings) }))
      .use(compatModelRoutes({ auth, modelResolver }))
      .use(messageRoutes({ auth, turns: createMessageTurns(deps), config }))
      .use(messageProbes())
      .use(responsesRoutes({ ...deps, turns }))
      .use(compactRoutes({ ...deps, turns, now }))
      .use(storedResponseRoutes({ auth, runs, listInputItems, config, log }))
      .use(responsesSocket({ ...deps, turns }))
      .use(conversationRoutes({ ...deps, findItems }))
      .use(settingsRoutes(deps))
      .use(translationRoutes(deps))
      .use(brandingRoutes(deps))
      .use(installerRoutes(deps))
      .use(documentRoutes(deps))
      .use(speechSocket({ ...deps, sessions: deps.speech }))
      .use(transcriptionRoutes(deps))
  const endpoints = mountEndpoints(listEndpoints(deps), {
    auth,
    config,
    describe: describeEndpoint,
  })
  return app.use(endpoints).use(docsRoutes({ ...deps, listRoutes: () => app.routes }))
}

/** Every endpoint of the API. */
function listEndpoints(deps: Deps): Endpoint[] {
  return [...agentEndpoints({ ...deps, knownModel: deps.modelResolver.agentModelName })]
}

/** Files and folders, and what is found in them. */
function documentRoutes(deps: Deps) {
  const withClock = { ...deps, now: deps.clock.now }
  return new Elysia({ name: 'documents' })
    .use(listingRoutes(deps))
    .use(uploadRoutes(withClock))
    .use(downloadRoutes(deps))
    .use(fileRoutes(deps))
    .use(folderRoutes(deps))
    .use(fileShareRoutes(deps))
    .use(principalRoutes(deps))
    .use(ingestRoutes(deps))
    .use(collectionRoutes(deps))
    .use(collectionShareRoutes(deps))
    .use(fileMembershipRoutes(deps))
    .use(searchRoutes(deps))
    .use(vectorStoreRoutes(deps))
    .use(reindexRoutes(deps))
}
