import { createLoadingCache } from '#lib/loading-cache.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Agent } from './agents.ts'
import type { Agents } from './store.ts'

/** What the model list shows of an agent. */
export type ListedAgent = Pick<Agent, 'id' | 'name' | 'description' | 'model' | 'createdAt'>

export type CallableAgents = Awaited<ReturnType<typeof createCallableAgents>>

/** Older agents are not listed among the models. */
const listedAgentsMax = 1_000
/** Lists by principal, of about 1 KB for each agent. */
const listsMax = 500
const cachedListMax = 100
/** A definition may have 400 KB. */
const definitionsMax = 200

/**
 * The agents that a principal may call, cached: every model list and every request to an agent needs
 * them. A change invalidates the caches of this process at once, and of the others by notification.
 */
export async function createCallableAgents(agents: Pick<Agents, 'find' | 'list' | 'listen'>) {
  const lists = createLoadingCache<readonly ListedAgent[]>({ entriesMax: listsMax })
  const definitions = createLoadingCache<Agent | undefined>({ entriesMax: definitionsMax })
  const invalidate = () => {
    lists.invalidate()
    definitions.invalidate()
  }
  await agents.listen(invalidate)
  return {
    invalidate,

    /** Newest first. Fails with `service_unavailable` like a query. */
    async list(principal: RequestPrincipal): Promise<readonly ListedAgent[]> {
      const key = keyOf(principal)
      const known = lists.get(key)
      if (known !== undefined) return known
      const load = async () => {
        const page = await agents.list(principal, { limit: listedAgentsMax })
        return page.agents.map(({ id, name, description, model, createdAt }) => {
          return { id, name, description, model, createdAt }
        })
      }
      return lists.load(key, load, (list) => list.length <= cachedListMax)
    },

    async find(principal: RequestPrincipal, id: string): Promise<Agent | undefined> {
      const key = `${id} ${keyOf(principal)}`
      return (
        definitions.get(key) ??
        definitions.load(
          key,
          () => agents.find(principal, id),
          (agent) => agent !== undefined,
        )
      )
    },
  }
}

function keyOf({ userId, groups }: RequestPrincipal): string {
  return `${userId} ${JSON.stringify(groups)}`
}
