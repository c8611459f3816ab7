import { sql } from 'drizzle-orm'
import {
  bigint,
  check,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })
const count = (name: string) => integer(name).notNull().default(0)
const tokens = (name: string) => bigint(name, { mode: 'number' }).notNull().default(0)

// JSON is stored as text: `jsonb` rejects NUL characters. An owner is not a foreign key: users are known
// by their tokens before they have a row.

/** Requests of one file or body, which run in the background with the rights of their creator. */
export const batch = pgTable(
  'batch',
  {
    id: text('id').primaryKey(),
    ownerId: uuid('owner_id').notNull(),
    /** The API key that created it; null for a token. */
    keyId: text('key_id'),
    /** A JSON array: the groups of the token, for a user without a row. */
    groups: text('groups').notNull(),
    /** Of the request that created it. */
    requestId: text('request_id').notNull(),
    /** The path that each line is a request to. */
    endpoint: text('endpoint').notNull(),
    /** A JSON object of the request headers that change how lines are read; null: none. */
    headers: text('headers'),
    /** Null: the requests were in the body. */
    inputFileId: uuid('input_file_id'),
    inputSha256: text('input_sha256').notNull(),
    inputBytes: bigint('input_bytes', { mode: 'number' }).notNull(),
    /** A JSON object, or null. */
    metadata: text('metadata'),
    /** The lifetime of output files; null: unlimited. */
    outputLifetimeS: integer('output_lifetime_s'),
    status: text('status', {
      enum: [
        'validating',
        'in_progress',
        'finalizing',
        'cancelling',
        'completed',
        'failed',
        'expired',
        'cancelled',
      ],
    }).notNull(),
    /** The status after `finalizing` or `cancelling`; null before. */
    ending: text('ending', { enum: ['completed', 'failed', 'expired', 'cancelled'] }),
    /** A JSON array of what made the batch fail; null: nothing. */
    errors: text('errors'),
    /** The model of its first line. */
    model: text('model'),
    total: count('total'),
    completed: count('completed'),
    failed: count('failed'),
    inputTokens: tokens('input_tokens'),
    cachedTokens: tokens('cached_tokens'),
    outputTokens: tokens('output_tokens'),
    reasoningTokens: tokens('reasoning_tokens'),
    outputFileId: uuid('output_file_id'),
    errorFileId: uuid('error_file_id'),
    /** The content with the results of a batch without output files. */
    resultsSha256: text('results_sha256'),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
    inProgressAt: instant('in_progress_at'),
    finalizingAt: instant('finalizing_at'),
    cancellingAt: instant('cancelling_at'),
    endedAt: instant('ended_at'),
  },
  (table) => [
    check(
      'batch_status',
      sql`${table.status} in ('validating', 'in_progress', 'finalizing', 'cancelling', 'completed', 'failed', 'expired', 'cancelled')`,
    ),
    index('batch_owner').on(table.ownerId, table.createdAt, table.id),
    index('batch_open').on(table.expiresAt).where(sql`${table.endedAt} is null`),
    index('batch_ended').on(table.endedAt).where(sql`${table.endedAt} is not null`),
    index('batch_input_sha256').on(table.inputSha256),
    index('batch_results_sha256')
      .on(table.resultsSha256)
      .where(sql`${table.resultsSha256} is not null`),
  ],
)

/** The lines of unfinished batches; their requests are in the input content. */
export const batchLine = pgTable(
  'batch_line',
  {
    batchId: text('batch_id')
      .notNull()
      .references(() => batch.id, { onDelete: 'cascade' }),
    /** From 1, as editors count. */
    line: integer('line').notNull(),
    /** Lines of one slot run one after the other. */
    slot: smallint('slot').notNull(),
    customId: text('custom_id').notNull(),
    /** Where its JSON is in the input. */
    startByte: bigint('start_byte', { mode: 'number' }).notNull(),
    bytes: integer('bytes').notNull(),
    /** The line of the output; null: not answered yet. */
    answer: text('answer'),
    outcome: text('outcome', { enum: ['completed', 'failed'] }),
  },
  (table) => [
    primaryKey({ columns: [table.batchId, table.line] }),
    uniqueIndex('batch_line_custom_id').on(table.batchId, table.customId),
    index('batch_line_unanswered')
      .on(table.batchId, table.slot, table.line)
      .where(sql`${table.answer} is null`),
  ],
)
