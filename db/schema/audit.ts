import { index, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core'

/** The audit log, append-only. */
export const auditEntry = pgTable(
  'audit_entry',
  {
    /** UUIDv7: sorting by id is sorting by age. */
    id: uuid('id').primaryKey(),
    at: timestamp('at', { withTimezone: true, mode: 'date' }).notNull(),
    /** Null: the system itself. */
    actorId: uuid('actor_id'),
    /** The API key of the request, if any. */
    actorKeyId: uuid('actor_key_id'),
    /** `group.update`, `user.disable` … */
    action: text('action').notNull(),
    resourceType: text('resource_type').notNull(),
    resourceId: text('resource_id').notNull(),
    /** JSON: the state before and after, without secrets. */
    changes: text('changes').notNull(),
    requestId: text('request_id'),
    /** Of the client of the request. */
    clientAddress: text('client_address'),
  },
  (table) => [
    index('audit_entry_resource').on(table.resourceType, table.resourceId, table.id),
    index('audit_entry_actor').on(table.actorId, table.id),
    index('audit_entry_action').on(table.action, table.id).concurrently(),
  ],
)
