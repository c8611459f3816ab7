import { sql } from 'drizzle-orm'
import { check, index, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** Notified with each change of an agent. */
export const agentsChannel = 'agents'

export const agent = pgTable(
  'agent',
  {
    /** UUIDv7: sorting by id is sorting by age. */
    id: uuid('id').primaryKey(),
    /** Not a foreign key: users are known by their tokens before they have a row. */
    ownerId: uuid('owner_id').notNull(),
    /** The agent as JSON. The columns below are derived from it, for queries by visibility. */
    definition: text('definition').notNull(),
    visibility: text('visibility', { enum: ['owner', 'groups', 'users', 'everyone'] }).notNull(),
    groups: text('groups').array().notNull(),
    userIds: uuid('user_ids').array().notNull(),
    /** Computed by a trigger, since the previous version stores names in the definition. */
    collectionIds: uuid('collection_ids').array().notNull().default([]),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    check('agent_visibility', sql`${table.visibility} in ('owner', 'groups', 'users', 'everyone')`),
    index('agent_owner_id').on(table.ownerId, table.id),
    index('agent_groups').using('gin', table.groups),
    index('agent_collection_ids').using('gin', table.collectionIds),
    index('agent_user_ids').using('gin', table.userIds),
    index('agent_everyone').on(table.id).where(sql`${table.visibility} = 'everyone'`),
  ],
)
