import {
  boolean,
  index,
  integer,
  pgTable,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** Work that survives its process: added in the transaction of what it follows from. */
export const job = pgTable(
  'job',
  {
    /** UUIDv7: older work comes first. */
    id: uuid('id').primaryKey(),
    queue: text('queue').notNull(),
    /** Of work that need not be done twice: while it waits, adding it again changes nothing. */
    key: text('key'),
    /** JSON. */
    payload: text('payload').notNull(),
    runAt: instant('run_at').notNull(),
    /** How often it was begun. */
    attempts: integer('attempts').notNull().default(0),
    /** Added again while it was being done, so it is to be done once more. */
    again: boolean('again').notNull().default(false),
    /** The claim that holds it, and until when others leave it alone; null: nobody works on it. */
    lockedBy: uuid('locked_by'),
    lockedUntil: instant('locked_until'),
    lastError: text('last_error'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    uniqueIndex('job_queue_key').on(table.queue, table.key),
    index('job_queue_run_at').on(table.queue, table.runAt),
  ],
)
