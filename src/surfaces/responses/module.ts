import type { Auth } from '#auth/auth.ts'
import { type LineAnswers, responsesPath } from '#batches/batches.ts'
import type { Files } from '#files/tree.ts'
import type { HostedToolbox } from '#hosted-tools/hosted-tools.ts'
import type { OpenSockets } from '#http/open-sockets.ts'
import type { Inference } from '#inference/inference.ts'
import type { TokenCounter } from '#inference/token-count/counter.ts'
import type { Jobs } from '#jobs/jobs.ts'
import type { Limits } from '#limits/admission.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import { type Foundation, module } from '#module.ts'
import { type Conversations, createConversations } from '#responses/conversation-store.ts'
import { responseMetrics } from '#responses/metrics.ts'
import { createResponseRuns, type ResponseRuns } from '#responses/runs.ts'
import { createResponseStore, type ResponseStore } from '#responses/store.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import type { DocumentReader } from '#retrieval/extraction/document-reader.ts'
import type { Sealer } from '#sealing/sealer.ts'
import type { Storage } from '#storage/storage.ts'
import { createRequestFiles } from '#surfaces/request-files.ts'
import { conversationEndpoints } from './conversation-endpoints.ts'
import { renderEndedStream } from './ended-stream.ts'
import { responseEndpoints } from './endpoints.ts'
import { createLogReplay } from './log-replay.ts'
import { renderTerminalFrames } from './render.ts'
import { createResponseService } from './service.ts'
import { storedResponseEndpoints } from './stored-endpoints.ts'
import { responsesSocket } from './websocket.ts'

type EndpointNeeds = Foundation & {
  auth: Auth
  modelResolver: ModelResolver
  limits: Limits
  inference: Inference
  hostedTools: HostedToolbox
  files: Files
  storage: Storage
  documents: DocumentReader
  collections: Collections
  tokenCounter: TokenCounter
  sealer: Sealer
  sockets: OpenSockets
  responses: ResponseStore
  conversations: Conversations
  runs: ResponseRuns
  lineAnswers: LineAnswers
}

/** The Responses API, with stored responses and conversations. */
export const responsesModule = module({
  name: 'responses',
  tags: {
    Responses: 'Generations, whole or streamed, over HTTP and WebSocket.',
    Conversations: 'Items shared by several responses.',
  },
  metrics: [responseMetrics],
  async start({
    config,
    settings,
    log,
    database,
    now,
    metrics,
    jobs,
  }: Foundation & { jobs: Jobs }) {
    const ttlS = () => settings.current().responses.ttl_seconds
    const storing = { limits: config.responses, ttlS, now }
    const responses = createResponseStore(database, storing)
    const runs = await createResponseRuns({
      store: responses,
      runnerId: database.processName,
      bus: database,
      jobs,
      soleProcess: database.kind === 'pglite',
      settings: config.responses,
      heartbeatMs: config.stream.heartbeatMs,
      rendering: { renderTerminalFrames, renderEndedStream, replayLog: createLogReplay },
      log,
      now,
    })
    metrics.gauge(responseMetrics.running, runs.running)
    return {
      services: { responses, runs, conversations: createConversations(database, storing) },
      close: () => runs.close(),
    }
  },
  started(services: EndpointNeeds) {
    const service = createService(services)
    services.runs.processQueue(service.planQueued)
    services.lineAnswers.set(responsesPath, async (body, { context }) =>
      (await service.create(body, context)).result(),
    )
  },
  endpoints(services: EndpointNeeds) {
    const service = createService(services)
    return [
      ...responseEndpoints({ ...services, service }),
      responsesSocket({ ...services, service }),
      ...storedResponseEndpoints(services),
      ...conversationEndpoints(services),
    ]
  },
})

function createService(services: EndpointNeeds) {
  const { conversations, responses } = services
  const { findItems, chain } = responses
  return createResponseService({
    ...services,
    requestFiles: createRequestFiles(services),
    history: { findItems, chain, conversationItems: conversations.items },
  })
}
