import { pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core'

/** Upstreams that an administrator has taken out of service, on every worker. */
export const drainedUpstream = pgTable('drained_upstream', {
  name: text('name').primaryKey(),
  drainedBy: uuid('drained_by').notNull(),
  drainedAt: timestamp('drained_at', { withTimezone: true, mode: 'date' }).notNull(),
})
