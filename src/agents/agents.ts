import type { Principal } from '#auth/principal.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import { type AgentDatabase, createAgentStore } from './store.ts'

/** A stored configuration that is called like a model. */
export type Agent = AgentDefinition & {
  /** A UUID of version 7: sorting by id is sorting by age. */
  readonly id: string
  readonly ownerId: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type AgentDefinition = {
  readonly name: string
  readonly description: string | null
  /** The name of a model of the catalogue; never of another agent. */
  readonly model: string
  readonly instructions: string | null
  readonly tools: readonly AgentTool[]
  /** Names of collections that it may search. */
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

/** A configured MCP server, by its label. Who calls the agent must be allowed to use it. */
export type AgentServer = {
  readonly type: 'mcp'
  readonly label: string
  /** Null: every tool. */
  readonly allowed: readonly string[] | null
  readonly approval: 'always' | 'never'
}

/** What holds where a caller says nothing; null: the model's own default. */
export type AgentSampling = {
  readonly temperature: number | null
  readonly topP: number | null
  readonly topK: number | null
  readonly presencePenalty: number | null
  readonly frequencyPenalty: number | null
  readonly maxOutputTokens: number | null
  readonly reasoningEffort: string | null
}

/** Who may see and call it, beside its owner; users are named by the subjects of their tokens. */
export type Visibility =
  | { readonly kind: 'owner' | 'everyone' }
  | { readonly kind: 'groups'; readonly groups: readonly string[] }
  | { readonly kind: 'users'; readonly users: readonly string[] }

/** Whose eyes it is looked at with. */
export type Reader = Pick<Principal, 'userId' | 'groups'>

/**
 * The agents. Nothing is kept in memory, so that what is deleted or no longer shared is gone at once
 * on every replica. One that the reader may not see is answered as one that does not exist: by the
 * same statement, with undefined or false. What a request waits for fails with
 * `service_unavailable`, soon, without the database.
 */
export type Agents = {
  /** Throws `unprocessable` of code `too_many_agents`. */
  create(ownerId: string, definition: AgentDefinition): Promise<Agent>
  find(reader: Reader, id: string): Promise<Agent | undefined>
  /** Whether any agent searches this collection, whoever sees it. */
  nameCollection(name: string): Promise<boolean>
  /** Newest first, from after the agent with the id `after`. */
  list(
    reader: Reader,
    page: { limit: number; after: string | undefined },
  ): Promise<{ agents: readonly Agent[]; hasMore: boolean }>
  /** What `change` throws is thrown, and nothing is changed. */
  update(
    reader: Reader,
    id: string,
    change: (agent: Agent) => AgentDefinition,
  ): Promise<Agent | undefined>
  /** What `check` throws is thrown, and nothing is removed. */
  remove(reader: Reader, id: string, check: (agent: Agent) => void): Promise<boolean>
}

/** Enough for a person and their programs; one caller cannot fill the table. */
const agentsPerOwnerMax = 200

export function createAgents(database: AgentDatabase, { now }: { now: () => Date }): Agents {
  const store = createAgentStore(database)
  return {
    async create(ownerId, definition) {
      const at = now()
      const agent: Agent = {
        ...definition,
        id: Bun.randomUUIDv7(),
        ownerId,
        createdAt: at,
        updatedAt: at,
      }
      if (await store.add(agent, agentsPerOwnerMax)) return agent
      throw new AppError(
        'unprocessable',
        `You have ${agentsPerOwnerMax} agents, which is the limit; delete one first.`,
        { code: 'too_many_agents' },
      )
    },
    find: store.find,
    nameCollection: store.nameCollection,
    async list(reader, { limit, after }) {
      const agents = await store.list(reader, { limit: limit + 1, after })
      return { agents: agents.slice(0, limit), hasMore: agents.length > limit }
    },
    update: (reader, id, change) =>
      store.update(reader, id, (agent) => ({ ...agent, ...change(agent), updatedAt: now() })),
    remove: store.remove,
  }
}
