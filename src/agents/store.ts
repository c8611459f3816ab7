import { and, arrayContains, arrayOverlaps, desc, eq, lt, or, sql } from 'drizzle-orm'
import { userIdOf } from '#auth/principal.ts'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { agent } from '#db/schema/agents.ts'
import type { Agent, AgentDefinition, Reader } from './agents.ts'

export type AgentDatabase = Pick<Database, 'drizzle'>

type Row = typeof agent.$inferSelect

/** The table of agents. Every question about one agent is one statement with the same condition. */
export function createAgentStore({ drizzle }: AgentDatabase) {
  const ask = createQueryRunner()
  return {
    /** Adds an agent unless its owner has `ownedMax`; says whether it did. */
    add: (added: Agent, ownedMax: number): Promise<boolean> =>
      ask(() =>
        drizzle.transaction(async (transaction) => {
          // The lock of the count.
          await transaction.execute(
            sql`select pg_advisory_xact_lock(hashtextextended(${`agents of ${added.ownerId}`}, 0))`,
          )
          const owned = await transaction.$count(agent, eq(agent.ownerId, added.ownerId))
          if (owned >= ownedMax) return false
          await transaction.insert(agent).values(rowOf(added))
          return true
        }),
      ),

    find: (reader: Reader, id: string): Promise<Agent | undefined> =>
      ask(async () => {
        const [row] = await drizzle.select().from(agent).where(isSeen(reader, id))
        return row === undefined ? undefined : agentOf(row)
      }),

    /** Newest first. */
    list: (reader: Reader, page: { limit: number; after: string | undefined }): Promise<Agent[]> =>
      ask(async () => {
        const isBehind = page.after === undefined ? undefined : lt(agent.id, page.after)
        const rows = await drizzle
          .select()
          .from(agent)
          .where(and(isVisibleTo(reader), isBehind))
          .orderBy(desc(agent.id))
          .limit(page.limit)
        return rows.map(agentOf)
      }),

    /** Whether any agent names this collection, whoever sees it. */
    nameCollection: (collection: string): Promise<boolean> =>
      ask(async () => {
        const [found] = await drizzle.execute(sql`
          select 1 from agent, json_array_elements_text(definition::json -> 'collections') as named
          where named = ${collection}
          limit 1`)
        return found !== undefined
      }),

    update: (
      reader: Reader,
      id: string,
      change: (known: Agent) => Agent,
    ): Promise<Agent | undefined> =>
      ask(() =>
        drizzle.transaction(async (transaction) => {
          const [row] = await transaction
            .select()
            .from(agent)
            .where(isSeen(reader, id))
            .for('update')
          if (row === undefined) return undefined
          const changed = change(agentOf(row))
          await transaction.update(agent).set(rowOf(changed)).where(eq(agent.id, id))
          return changed
        }),
      ),

    remove: (reader: Reader, id: string, check: (known: Agent) => void): Promise<boolean> =>
      ask(() =>
        drizzle.transaction(async (transaction) => {
          const [row] = await transaction
            .select()
            .from(agent)
            .where(isSeen(reader, id))
            .for('update')
          if (row === undefined) return false
          check(agentOf(row))
          await transaction.delete(agent).where(eq(agent.id, id))
          return true
        }),
      ),
  }
}

function isSeen(reader: Reader, id: string) {
  return and(eq(agent.id, id), isVisibleTo(reader))
}

/** The one place that says who sees an agent. */
function isVisibleTo({ userId, groups }: Reader) {
  return or(
    eq(agent.ownerId, userId),
    eq(agent.visibility, 'everyone'),
    // Whom it is not shared with has no row in these; see `rowOf`.
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
