import { pgTable, serial, text, timestamp, uuid } from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** The settings of administrators, one row per change; the newest row is current. */
export const settingsRevision = pgTable('settings_revision', {
  revision: serial('revision').primaryKey(),
  actorId: uuid('actor_id').notNull(),
  /** JSON: the merge patch, and the settings before and after it, without defaults. */
  patch: text('patch').notNull(),
  before: text('before').notNull(),
  after: text('after').notNull(),
  createdAt: instant('created_at').notNull(),
})
