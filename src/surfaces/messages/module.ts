import type { Files } from '#files/tree.ts'
import type { HostedToolbox } from '#hosted-tools/hosted-tools.ts'
import type { Inference } from '#inference/inference.ts'
import type { TokenCounter } from '#inference/token-count/counter.ts'
import type { Limits } from '#limits/admission.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import { type Foundation, module } from '#module.ts'
import type { DocumentReader } from '#retrieval/extraction/document-reader.ts'
import type { Sealer } from '#sealing/sealer.ts'
import type { Storage } from '#storage/storage.ts'
import { createRequestFiles } from '#surfaces/request-files.ts'
import { messageEndpoints } from './endpoints.ts'
import { compatModelEndpoints } from './model-endpoints.ts'
import { createMessageService } from './service.ts'

type EndpointNeeds = Foundation & {
  modelResolver: ModelResolver
  limits: Limits
  inference: Inference
  hostedTools: HostedToolbox
  files: Files
  storage: Storage
  documents: DocumentReader
  tokenCounter: TokenCounter
  sealer: Sealer
}

/** The Messages API under /compat. */
export const messagesModule = module({
  name: 'messages',
  tags: { Messages: 'The Messages-compatible surface under /compat.' },
  endpoints: (services: EndpointNeeds) =>
    // Platform 1.2.1 added the surface.
    services.config.platformVersion === '1.2.0'
      ? []
      : [
          ...compatModelEndpoints(services),
          ...messageEndpoints({
            ...services,
            service: createMessageService({
              ...services,
              requestFiles: createRequestFiles(services),
            }),
          }),
        ],
})
