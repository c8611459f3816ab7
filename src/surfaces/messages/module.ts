import type { Auth } from '#auth/auth.ts'
import type { HostedToolbox } from '#hosted-tools/hosted-tools.ts'
import type { Generations } from '#inference/generate.ts'
import type { TokenCounter } from '#inference/token-count/counter.ts'
import type { ModelResolver } from '#models/model-resolver.ts'
import { type Foundation, module } from '#module.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { compatModelRoutes } from './model-routes.ts'
import { messageProbes, messageRoutes } from './routes.ts'
import { createMessageTurns } from './turn.ts'

type EndpointNeeds = Foundation & {
  auth: Auth
  modelResolver: ModelResolver
  generations: Generations
  hostedTools: HostedToolbox
  tokenCounter: TokenCounter
  sealer: Sealer
}

/** The Messages API under /compat. */
export const messagesModule = module({
  name: 'messages',
  routes: (services: EndpointNeeds) => [
    compatModelRoutes(services),
    messageRoutes({ ...services, turns: createMessageTurns(services) }),
    messageProbes(),
  ],
})
