import { sql } from 'drizzle-orm'
import { check, pgTable, smallint, text, timestamp } from 'drizzle-orm/pg-core'

/** The secret that seals are made with where none is configured. There is one row at most. */
export const sealSecret = pgTable(
  'seal_secret',
  {
    id: smallint('id').primaryKey(),
    secret: text('secret').notNull(),
    createdAt: timestamp('created_at', { withTimezone: true, mode: 'date' }).notNull().defaultNow(),
  },
  (table) => [check('seal_secret_one', sql`${table.id} = 1`)],
)
