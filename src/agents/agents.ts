import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { type AgentDatabase, createAgentStore } from './store.ts'

/** A stored configuration that is called like a model. */
export type Agent = AgentDefinition & {
  /** A UUID of version 7, so ids sort by age. */
  readonly id: string
  readonly ownerId: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type AgentDefinition = {
  readonly name: string
  readonly description: string | null
  /** A model of the catalogue, not an agent. */
  readonly model: string
  readonly instructions: string | null
  readonly tools: readonly AgentTool[]
  /** Names of the collections to search. */
  readonly collections: readonly string[]
  readonly sampling: AgentSampling
  readonly visibility: Visibility
}

export type AgentTool = AgentFunction | AgentServer

export type AgentFunction = {
  readonly type: 'function'
  readonly name: string
  readonly description: string | null
  readonly parameters: JsonObject | null
  readonly strict: boolean | null
}

/** A configured MCP server, by its label. Callers of the agent need access to it. */
export type AgentServer = {
  readonly type: 'mcp'
  readonly label: string
  /** Null: all tools. */
  readonly allowed: readonly string[] | null
  readonly approval: 'always' | 'never'
}

/** Defaults for requests; null: the default of the model. */
export type AgentSampling = {
  readonly temperature: number | null
  readonly topP: number | null
  readonly topK: number | null
  readonly presencePenalty: number | null
  readonly frequencyPenalty: number | null
  readonly maxOutputTokens: number | null
  readonly reasoningEffort: string | null
}

/** Who may see and call the agent besides its owner. Users are token subjects. */
export type Visibility =
  | { readonly kind: 'owner' | 'everyone' }
  | { readonly kind: 'groups'; readonly groups: readonly string[] }
  | { readonly kind: 'users'; readonly users: readonly string[] }

/**
 * Nothing is cached, so a deletion or an ended share takes effect on all replicas at once. An agent that
 * the principal may not see does not exist for them: the result is undefined or false. Queries fail
 * with `service_unavailable` after a short timeout.
 */
export type Agents = {
  /** Throws `unprocessable` of code `too_many_agents`. */
  create(ownerId: string, definition: AgentDefinition): Promise<Agent>
  find(principal: RequestPrincipal, id: string): Promise<Agent | undefined>
  /** Whether any agent of any user searches this collection. */
  isCollectionUsed(name: string): Promise<boolean>
  /** Newest first, after the agent with the id `after`. */
  list(
    principal: RequestPrincipal,
    page: { limit: number; after: string | undefined },
  ): Promise<{ agents: readonly Agent[]; hasMore: boolean }>
  /** Changes nothing and rethrows if `change` throws. */
  update(
    principal: RequestPrincipal,
    id: string,
    change: (agent: Agent) => AgentDefinition,
  ): Promise<Agent | undefined>
  /** Removes nothing and rethrows if `check` throws. */
  remove(principal: RequestPrincipal, id: string, check: (agent: Agent) => void): Promise<boolean>
}

/** Prevents one user from filling the table. */
const agentsPerOwnerMax = 200

export function createAgents(database: AgentDatabase, { now }: { now: () => Date }): Agents {
  const store = createAgentStore(database)
  return {
    async create(ownerId, definition) {
      const createdAt = now()
      const agent: Agent = {
        ...definition,
        id: Bun.randomUUIDv7(),
        ownerId,
        createdAt,
        updatedAt: createdAt,
      }
      if (await store.add(agent, agentsPerOwnerMax)) return agent
      throw new AppError(
        'unprocessable',
        `You have ${agentsPerOwnerMax} agents, which is the limit; delete one first.`,
        { code: 'too_many_agents' },
      )
    },
    find: store.find,
    isCollectionUsed: store.isCollectionUsed,
    async list(principal, { limit, after }) {
      const agents = await store.list(principal, { limit: limit + 1, after })
      return { agents: agents.slice(0, limit), hasMore: agents.length > limit }
    },
    update: (principal, id, change) =>
      store.update(principal, id, (agent) => ({ ...agent, ...change(agent), updatedAt: now() })),
    remove: store.remove,
  }
}
