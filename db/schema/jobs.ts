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

/** Durable jobs, added in the transaction of their cause. */
export const job = pgTable(
  'job',
  {
    /** UUIDv7: older jobs come first. */
    id: uuid('id').primaryKey(),
    queue: text('queue').notNull(),
    /** Deduplicates waiting jobs of a queue. */
    key: text('key'),
    /** Jobs of a lane run oldest first; the lanes of a queue take turns. */
    lane: text('lane').notNull().default(''),
    /** JSON. */
    payload: text('payload').notNull(),
    runAt: instant('run_at').notNull(),
    /** Started attempts. */
    attempts: integer('attempts').notNull().default(0),
    /** It was added again while it ran, and runs once more. */
    again: boolean('again').notNull().default(false),
    /** The claim that holds the lease, and its expiry; null: the job is not running. */
    lockedBy: uuid('locked_by'),
    lockedUntil: instant('locked_until'),
    lastError: text('last_error'),
    /** `traceparent` and `tracestate` of its cause, with a space between; null: none. */
    trace: text('trace'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    uniqueIndex('job_queue_key').on(table.queue, table.key),
    index('job_queue_run_at').on(table.queue, table.runAt),
    index('job_queue_lane').on(table.queue, table.lane, table.runAt, table.id),
  ],
)
