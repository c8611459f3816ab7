import { type Foundation, module } from '#module.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import { agentEndpoints } from './endpoints.ts'
import { type Agents, createAgents } from './store.ts'

/** Stored configurations that clients call like models. */
export const agentsModule = module({
  name: 'agents',
  tags: { Agents: 'Stored configurations that are called like models.' },
  start: ({ database, now }: Foundation) => ({
    services: { agents: createAgents(database, { now }) },
  }),
  endpoints: ({
    modelResolver,
    ...services
  }: {
    agents: Agents
    collections: Collections
    modelNames: { ofAgent(id: string): string }
    modelResolver: { agentModelName(name: string): string | undefined }
  }) => agentEndpoints({ ...services, knownModel: modelResolver.agentModelName }),
})
