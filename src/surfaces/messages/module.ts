import { type LineAnswers, messagesPath } from '#batches/batches.ts'
import type { Batches } from '#batches/service.ts'
import type { Files } from '#files/tree.ts'
import type { HostedToolbox } from '#hosted-tools/hosted-tools.ts'
import type { Inference } from '#inference/inference.ts'
import type { TokenCounter } from '#inference/token-count/counter.ts'
import type { ClientAddresses } from '#lib/client-address.ts'
import type { Limits } from '#limits/admission.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import { type Foundation, module } from '#module.ts'
import type { DocumentReader } from '#retrieval/extraction/document-reader.ts'
import type { Sealer } from '#sealing/sealer.ts'
import type { Storage } from '#storage/storage.ts'
import { createRequestFiles } from '#surfaces/request-files.ts'
import { messageBatchEndpoints } from './batch-endpoints.ts'
import { messageEndpoints } from './endpoints.ts'
import { compatModelEndpoints } from './model-endpoints.ts'
import { invalidField } from './read-object.ts'
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
  batches: Batches
  lineAnswers: LineAnswers
  clientAddresses: ClientAddresses
}

/** The Messages API under /compat. */
export const messagesModule = module({
  name: 'messages',
  tags: { Messages: 'The Messages-compatible surface under /compat.' },
  started(services: EndpointNeeds) {
    const service = createService(services)
    services.lineAnswers.set(messagesPath, async (body, line) => {
      if (body['stream'] === true) throw invalidField('stream', 'must not be true in a batch')
      return (await service.create(body, line)).result()
    })
  },
  endpoints(services: EndpointNeeds) {
    // Platform 1.2.1 added the surface.
    if (services.config.platformVersion === '1.2.0') return []
    const service = createService(services)
    return [
      ...compatModelEndpoints(services),
      ...messageEndpoints({ ...services, service }),
      ...messageBatchEndpoints(services),
    ]
  },
})

function createService(services: EndpointNeeds) {
  return createMessageService({ ...services, requestFiles: createRequestFiles(services) })
}
