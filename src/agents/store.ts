import { and, arrayContains, arrayOverlaps, desc, eq, lt, or, sql } from 'drizzle-orm'
import { userIdOf } from '#auth/principal.ts'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { agent } from '#db/schema/agents.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Agent, AgentDefinition } from './agents.ts'

export type AgentDatabase = Pick<Database, 'drizzle'>

type Row = typeof agent.$inferSelect

export function createAgentStore({ drizzle }: AgentDatabase) {
  const query = createQueryRunner()
  return {
    /** Returns false if the owner has `ownedMax` agents. */
    add: (added: Agent, ownedMax: number): Promise<boolean> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          // Serialises the count and the insert.
          await transaction.execute(
            sql`select pg_advisory_xact_lock(hashtextextended(${`agents of ${added.ownerId}`}, 0))`,
          )
          const owned = await transaction.$count(agent, eq(agent.ownerId, added.ownerId))
          if (owned >= ownedMax) return false
          await transaction.insert(agent).values(rowOf(added))
          return true
        }),
      ),

    find: (principal: RequestPrincipal, id: string): Promise<Agent | undefined> =>
      query(async () => {
        const [row] = await drizzle.select().from(agent).where(isVisible(principal, id))
        return row === undefined ? undefined : agentOf(row)
      }),

    /** Newest first. */
    list: (
      principal: RequestPrincipal,
      page: { limit: number; after: string | undefined },
    ): Promise<Agent[]> =>
      query(async () => {
        const isAfter = page.after === undefined ? undefined : lt(agent.id, page.after)
        const rows = await drizzle
          .select()
          .from(agent)
          .where(and(isVisibleTo(principal), isAfter))
          .orderBy(desc(agent.id))
          .limit(page.limit)
        return rows.map(agentOf)
      }),

    /** Whether any agent of any user searches this collection. */
    isCollectionUsed: (collection: string): Promise<boolean> =>
      query(async () => {
        const [found] = await drizzle.execute(sql`
          select 1 from agent, json_array_elements_text(definition::json -> 'collections') as named
          where named = ${collection}
          limit 1`)
        return found !== undefined
      }),

    update: (
      principal: RequestPrincipal,
      id: string,
      change: (current: Agent) => Agent,
    ): Promise<Agent | undefined> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          const visible = transaction.select().from(agent).where(isVisible(principal, id))
          const [row] = await visible.for('update')
          if (row === undefined) return undefined
          const changed = change(agentOf(row))
          await transaction.update(agent).set(rowOf(changed)).where(eq(agent.id, id))
          return changed
        }),
      ),

    remove: (
      principal: RequestPrincipal,
      id: string,
      check: (current: Agent) => void,
    ): Promise<boolean> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          const visible = transaction.select().from(agent).where(isVisible(principal, id))
          const [row] = await visible.for('update')
          if (row === undefined) return false
          check(agentOf(row))
          await transaction.delete(agent).where(eq(agent.id, id))
          return true
        }),
      ),
  }
}

function isVisible(principal: RequestPrincipal, id: string) {
  return and(eq(agent.id, id), isVisibleTo(principal))
}

/** The only definition of who may see an agent. */
function isVisibleTo({ userId, groups }: RequestPrincipal) {
  return or(
    eq(agent.ownerId, userId),
    eq(agent.visibility, 'everyone'),
    // Both columns are empty for other kinds of visibility; see `rowOf`.
    groups.length === 0 ? undefined : arrayOverlaps(agent.groups, [...groups]),
    arrayContains(agent.userIds, [userId]),
  )
}

function rowOf({ id, ownerId, createdAt, updatedAt, ...rest }: Agent): Row {
  const { name, description, model, instructions, tools, collections, sampling, visibility } = rest
  const definition: AgentDefinition = {
    name,
    description,
    model,
    instructions,
    tools,
    collections,
    sampling,
    visibility,
  }
  return {
    id,
    ownerId,
    definition: JSON.stringify(definition),
    visibility: visibility.kind,
    groups: visibility.kind === 'groups' ? [...visibility.groups] : [],
    userIds: visibility.kind === 'users' ? visibility.users.map(userIdOf) : [],
    createdAt,
    updatedAt,
  }
}

function agentOf({ id, ownerId, createdAt, updatedAt, definition }: Row): Agent {
  return { ...JSON.parse(definition), id, ownerId, createdAt, updatedAt }
}
