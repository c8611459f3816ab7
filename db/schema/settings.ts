import { pgTable, serial, text, timestamp, uuid } from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** What administrators have set, one row a change; the newest row holds. */
export const settingsRevision = pgTable('settings_revision', {
  revision: serial('revision').primaryKey(),
  actorId: uuid('actor_id').notNull(),
  /** JSON: the merge patch, and what was set before and after it (never what merely is a default). */
  patch: text('patch').notNull(),
  before: text('before').notNull(),
  after: text('after').notNull(),
  createdAt: instant('created_at').notNull(),
})
