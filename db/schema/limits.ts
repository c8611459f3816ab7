import {
  bigint,
  doublePrecision,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
} from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** Processes that hold shares of limits. Their slots are free again when they have expired. */
export const limitProcess = pgTable('limit_process', {
  id: text('id').primaryKey(),
  expiresAt: instant('expires_at').notNull(),
})

/** The use of a limit per period, which decays at a constant rate; leased units count as used. */
export const limitBucket = pgTable(
  'limit_bucket',
  {
    /** Scope, id and limit: `user:…:requests_per_minute`. */
    key: text('key').primaryKey(),
    used: doublePrecision('used').notNull(),
    updatedAt: instant('updated_at').notNull(),
    /** From then on nothing is used: the row equals none. */
    idleAt: instant('idle_at').notNull(),
  },
  (table) => [index('limit_bucket_idle_at').on(table.idleAt)],
)

/** Slots of concurrent work that a process holds. */
export const limitSlot = pgTable(
  'limit_slot',
  {
    key: text('key').notNull(),
    processId: text('process_id')
      .notNull()
      .references(() => limitProcess.id, { onDelete: 'cascade' }),
    slots: integer('slots').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.key, table.processId] }),
    index('limit_slot_process_id').on(table.processId),
  ],
)

/** What a user, key or group has used of its budgets in a day or month (UTC). */
export const budgetUse = pgTable(
  'budget_use',
  {
    /** `user:…`, `key:…`, `group:…`. */
    owner: text('owner').notNull(),
    /** `2026-11-23` or `2026-11`. */
    period: text('period').notNull(),
    tokens: bigint('tokens', { mode: 'number' }).notNull(),
    /** In billionths of the currency of the price table. */
    costNanos: bigint('cost_nanos', { mode: 'number' }).notNull(),
    /** When the soft budget was first exceeded. */
    warnedAt: instant('warned_at'),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.period] }),
    index('budget_use_period').on(table.period),
  ],
)
