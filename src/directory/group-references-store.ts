import { arrayContains, eq, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { agent, agentsChannel } from '#db/schema/agents.ts'
import { asRecord } from '#lib/json.ts'

/**
 * Removes the shares and agent visibilities that name a group, so that another group of this name does
 * not inherit them.
 */
export async function removeGroupReferences(
  { notifyOnCommit }: Pick<Database, 'notifyOnCommit'>,
  transaction: Transaction,
  name: string,
): Promise<void> {
  await transaction.execute(sql`
    delete from share where principal_type = 'group' and principal_id = ${name}`)
  const agents = await transaction
    .select({ id: agent.id, definition: agent.definition, groups: agent.groups })
    .from(agent)
    .where(arrayContains(agent.groups, [name]))
    .for('update')
  for (const { id, definition, groups: named } of agents) {
    const groups = named.filter((group) => group !== name)
    const visibility = groups.length === 0 ? { kind: 'owner' } : { kind: 'groups', groups }
    await transaction
      .update(agent)
      .set({
        definition: JSON.stringify({ ...asRecord(JSON.parse(definition)), visibility }),
        visibility: groups.length === 0 ? 'owner' : 'groups',
        groups,
      })
      .where(eq(agent.id, id))
  }
  if (agents.length > 0) await notifyOnCommit(transaction, agentsChannel, '')
}

/** Whether tokens or administrators put any user into the group. */
export async function hasMembers(transaction: Transaction, name: string): Promise<boolean> {
  const rows = await transaction.execute(sql`
    select 1 from user_group where group_name = ${name} limit 1`)
  return rows.length > 0
}
