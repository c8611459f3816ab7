import { sql } from 'drizzle-orm'
import { check, pgTable, smallint, text, timestamp } from 'drizzle-orm/pg-core'

/** The generated secret of a deployment without configured keys; at most one row. */
export const sealSecret = pgTable(
  'seal_secret',
  {
    id: smallint('id').primaryKey(),
    secret: text('secret').notNull(),
    createdAt: timestamp('created_at', { withTimezone: true, mode: 'date' }).notNull().defaultNow(),
  },
  (table) => [check('seal_secret_one', sql`${table.id} = 1`)],
)
