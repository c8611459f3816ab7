import { type Foundation, module } from '#module.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import { createCallableAgents } from './callable-agents.ts'
import { agentEndpoints, type KnownModelOf } from './endpoints.ts'
import { type Agents, createAgents } from './store.ts'

/** Stored configurations that clients call like models. */
export const agentsModule = module({
  name: 'agents',
  tags: { Agents: 'Stored configurations that are called like models.' },
  async start({ database, now }: Foundation) {
    const agents = createAgents(database, { now, onChange: () => callableAgents.invalidate() })
    const callableAgents = await createCallableAgents(agents)
    return { services: { agents, callableAgents } }
  },
  endpoints: ({
    modelResolver,
    ...services
  }: {
    agents: Agents
    collections: Collections
    modelNames: { ofAgent(id: string): string }
    modelResolver: { agentModelName: KnownModelOf }
  }) => agentEndpoints({ ...services, knownModel: modelResolver.agentModelName }),
})
