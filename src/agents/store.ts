import { and, arrayContains, arrayOverlaps, desc, eq, lt, or, sql } from 'drizzle-orm'
import { userIdOf } from '#auth/principal.ts'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { agent } from '#db/schema/agents.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Agent, AgentDefinition } from './agents.ts'

type Row = typeof agent.$inferSelect

/** Prevents one user from filling the table. */
const agentsPerOwnerMax = 200

export type Agents = ReturnType<typeof createAgents>

/**
 * Nothing is cached, so a deletion or an ended share takes effect on all replicas at once. An agent that
 * the principal may not see does not exist for them: the result is undefined or false. Queries fail
 * with `service_unavailable` after a short timeout.
 */
export function createAgents({ drizzle }: Pick<Database, 'drizzle'>, { now }: { now: () => Date }) {
  const query = createQueryRunner()

  /** Locks the agent for a change; rolls back and rethrows if `change` throws. */
  const lock = <T>(
    principal: RequestPrincipal,
    id: string,
    change: (
      current: Agent,
      transaction: Pick<Database['drizzle'], 'update' | 'delete'>,
    ) => Promise<T>,
  ): Promise<T | undefined> =>
    query(() =>
      drizzle.transaction(async (transaction) => {
        const visible = transaction.select().from(agent).where(isVisible(principal, id))
        const [row] = await visible.for('update')
        return row === undefined ? undefined : change(agentOf(row), transaction)
      }),
    )

  return {
    /** Throws `unprocessable` of code `too_many_agents`. */
    create: (ownerId: string, definition: AgentDefinition): Promise<Agent> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          // Serialises the count and the insert.
          await transaction.execute(
            sql`select pg_advisory_xact_lock(hashtextextended(${`agents of ${ownerId}`}, 0))`,
          )
          const owned = await transaction.$count(agent, eq(agent.ownerId, ownerId))
          if (owned >= agentsPerOwnerMax) throw tooManyAgents()
          const createdAt = now()
          const id = Bun.randomUUIDv7()
          const added = { ...definition, id, ownerId, createdAt, updatedAt: createdAt }
          await transaction.insert(agent).values(rowOf(added))
          return added
        }),
      ),

    find: (principal: RequestPrincipal, id: string): Promise<Agent | undefined> =>
      query(async () => {
        const [row] = await drizzle.select().from(agent).where(isVisible(principal, id))
        return row === undefined ? undefined : agentOf(row)
      }),

    /** Newest first, after the agent with the id `after`. */
    list: (principal: RequestPrincipal, page: { limit: number; after?: string | undefined }) =>
      query(async () => {
        const isAfter = page.after === undefined ? undefined : lt(agent.id, page.after)
        const rows = await drizzle
          .select()
          .from(agent)
          .where(and(isVisibleTo(principal), isAfter))
          .orderBy(desc(agent.id))
          .limit(page.limit + 1)
        return {
          agents: rows.slice(0, page.limit).map(agentOf),
          hasMore: rows.length > page.limit,
        }
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
      change: (current: Agent) => AgentDefinition,
    ): Promise<Agent | undefined> =>
      lock(principal, id, async (current, transaction) => {
        const changed = { ...current, ...change(current), updatedAt: now() }
        await transaction.update(agent).set(rowOf(changed)).where(eq(agent.id, id))
        return changed
      }),

    /** Removes nothing if `check` throws. */
    remove: async (
      principal: RequestPrincipal,
      id: string,
      check: (current: Agent) => void,
    ): Promise<boolean> => {
      const removed = await lock(principal, id, async (current, transaction) => {
        check(current)
        await transaction.delete(agent).where(eq(agent.id, id))
        return true
      })
      return removed === true
    },
  }
}

function tooManyAgents(): AppError {
  return new AppError(
    'unprocessable',
    `You have ${agentsPerOwnerMax} agents, which is the limit; delete one first.`,
    { code: 'too_many_agents' },
  )
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

function rowOf({ id, ownerId, createdAt, updatedAt, ...definition }: Agent): Row {
  const { visibility } = definition
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
