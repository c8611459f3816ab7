import { and, arrayContains, arrayOverlaps, desc, eq, lt, or, sql } from 'drizzle-orm'
import { changedFields } from '#audit/audit.ts'
import { userIdOf } from '#auth/principal.ts'
import { recordChange } from '#db/audit-entries.ts'
import type { Database, Transaction } from '#db/client.ts'
import { findUnknownGroup } from '#db/known-groups.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { agent, agentsChannel } from '#db/schema/agents.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import { type Agent, type AgentDefinition, builtInOwnerId } from './agents.ts'
import { emptyDefinition } from './definition.ts'

type Row = typeof agent.$inferSelect
/** The database derives `collectionIds` from the definition. */
type NewRow = Omit<Row, 'collectionIds'>

type BuiltInDefinition = Pick<
  Agent,
  'id' | 'name' | 'description' | 'model' | 'instructions' | 'collections'
>

/** Prevents one user from filling the table. */
const agentsPerOwnerMax = 200

export type Agents = ReturnType<typeof createAgents>

/**
 * An agent that the principal may not see does not exist for them: the result is undefined or false.
 * Queries fail with `service_unavailable` after a short timeout. Every change is notified on
 * `agentsChannel` with its commit, and calls `onChange` after it.
 */
export function createAgents(
  database: Pick<Database, 'drizzle' | 'listen' | 'notifyOnCommit'>,
  { now, onChange }: { now: () => Date; onChange: () => void },
) {
  const { drizzle } = database
  const query = createQueryRunner()

  const transact = async <T>(change: (transaction: Transaction) => Promise<T>): Promise<T> => {
    const result = await query(() =>
      drizzle.transaction(async (transaction) => {
        const changed = await change(transaction)
        await database.notifyOnCommit(transaction, agentsChannel, '')
        return changed
      }),
    )
    onChange()
    return result
  }

  /** Locks the agent for a change; rolls back and rethrows if `change` throws. */
  const lock = <T>(
    principal: RequestPrincipal,
    id: string,
    change: (current: Agent, transaction: Transaction) => Promise<T>,
  ): Promise<T | undefined> =>
    transact(async (transaction) => {
      const visible = transaction.select().from(agent).where(isVisible(principal, id))
      const [row] = await visible.for('update')
      return row === undefined ? undefined : change(agentOf(row), transaction)
    })

  /** Adds the changed fields to the audit log. */
  const record = async (
    transaction: Transaction,
    principal: RequestPrincipal,
    action: 'create' | 'update' | 'delete',
    { id, before, after }: { id: string; before?: AgentDefinition; after?: AgentDefinition },
  ): Promise<void> => {
    const changes = changedFields(auditedFields(before), auditedFields(after))
    if (changes === null) return
    await recordChange(transaction, principal, { kind: 'agent', id, action, ...changes, at: now() })
  }

  return {
    /** Calls back after each change of any process, or when one may have been missed. */
    listen: (onAnyChange: () => void): Promise<void> =>
      database.listen(agentsChannel, { onMessage: onAnyChange, onGap: onAnyChange }),

    /** Throws `unprocessable` of code `too_many_agents` or `principal_not_found`. */
    create: (owner: RequestPrincipal, definition: AgentDefinition): Promise<Agent> =>
      transact(async (transaction) => {
        const { userId: ownerId } = owner
        // Serialises the count and the insert.
        await transaction.execute(
          sql`select pg_advisory_xact_lock(hashtextextended(${`agents of ${ownerId}`}, 0))`,
        )
        const owned = await transaction.$count(agent, eq(agent.ownerId, ownerId))
        if (owned >= agentsPerOwnerMax) throw tooManyAgents()
        await requireKnownGroups(transaction, owner, { next: definition.visibility })
        const createdAt = now()
        const id = Bun.randomUUIDv7()
        const added = { ...definition, id, ownerId, createdAt, updatedAt: createdAt }
        await transaction.insert(agent).values(rowOf(added))
        await record(transaction, owner, 'create', { id, after: definition })
        return added
      }),

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

    /** Whether any agent of any user searches the collection with this id. */
    isCollectionUsed: (collectionId: string): Promise<boolean> =>
      query(async () => {
        const isUsed = arrayContains(agent.collectionIds, [collectionId])
        const [found] = await drizzle.select({ id: agent.id }).from(agent).where(isUsed).limit(1)
        return found !== undefined
      }),

    update: (
      principal: RequestPrincipal,
      id: string,
      change: (current: Agent) => AgentDefinition,
    ): Promise<Agent | undefined> =>
      lock(principal, id, async (current, transaction) => {
        const changed = { ...current, ...change(current), updatedAt: now() }
        const { visibility } = changed
        await requireKnownGroups(transaction, principal, { current, next: visibility })
        await transaction.update(agent).set(rowOf(changed)).where(eq(agent.id, id))
        await record(transaction, principal, 'update', { id, before: current, after: changed })
        return changed
      }),

    /** An agent of the program itself, visible to everyone; replaces the one with this id. */
    async putBuiltIn(transaction: Transaction, definition: BuiltInDefinition): Promise<void> {
      const at = now()
      const row = rowOf({
        ...emptyDefinition,
        ...definition,
        visibility: { kind: 'everyone' },
        ownerId: builtInOwnerId,
        createdAt: at,
        updatedAt: at,
      })
      const { id: _, createdAt: __, ...set } = row
      await transaction.insert(agent).values(row).onConflictDoUpdate({ target: agent.id, set })
      await database.notifyOnCommit(transaction, agentsChannel, '')
    },

    async removeBuiltIn(transaction: Transaction, id: string): Promise<void> {
      await transaction.delete(agent).where(eq(agent.id, id))
      await database.notifyOnCommit(transaction, agentsChannel, '')
    },

    /** Removes nothing if `check` throws. */
    remove: async (
      principal: RequestPrincipal,
      id: string,
      check: (current: Agent) => void,
    ): Promise<boolean> => {
      const removed = await lock(principal, id, async (current, transaction) => {
        check(current)
        await transaction.delete(agent).where(eq(agent.id, id))
        await record(transaction, principal, 'delete', { id, before: current })
        return true
      })
      return removed === true
    },
  }
}

function auditedFields(definition: AgentDefinition | undefined): JsonObject | null {
  if (definition === undefined) return null
  const { name, description, model, instructions, tools, collections } = definition
  const { sampling, speech, visibility } = definition
  return {
    name,
    description,
    model,
    instructions,
    tools,
    collections,
    sampling,
    speech,
    visibility,
  }
}

/** A group that is created later must not inherit an agent. */
async function requireKnownGroups(
  transaction: Pick<Database['drizzle'], 'execute'>,
  { groups: own }: RequestPrincipal,
  { current, next }: { current?: Agent; next: Agent['visibility'] },
): Promise<void> {
  const groups = groupsOf(next)
  const kept = new Set([...own, ...(current === undefined ? [] : groupsOf(current.visibility))])
  const added = groups.filter((name) => !kept.has(name))
  const unknown = await findUnknownGroup(transaction, added)
  if (unknown === undefined) return
  const param = `visibility.groups[${groups.indexOf(unknown)}]`
  throw refused(param, `There is no group "${unknown}".`, 'principal_not_found')
}

function groupsOf(visibility: Agent['visibility']): readonly string[] {
  return visibility.kind === 'groups' ? visibility.groups : []
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

function rowOf({ id, ownerId, createdAt, updatedAt, ...definition }: Agent): NewRow {
  const { visibility } = definition
  return {
    id,
    ownerId,
    definition: JSON.stringify(definition),
    visibility: visibility.kind,
    groups: [...groupsOf(visibility)],
    userIds: visibility.kind === 'users' ? visibility.users.map(userIdOf) : [],
    createdAt,
    updatedAt,
  }
}

function agentOf({ id, ownerId, createdAt, updatedAt, definition, collectionIds }: Row): Agent {
  const collections = collectionIds
  // Versions before this one stored no speech.
  return { speech: null, ...JSON.parse(definition), collections, id, ownerId, createdAt, updatedAt }
}
