import { sql } from 'drizzle-orm'
import {
  boolean,
  check,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

// JSON is stored as text: `jsonb` rejects NUL characters, which models and clients may send. An owner
// is not a foreign key: users are known by their tokens before they have a row.

export const response = pgTable(
  'response',
  {
    id: text('id').primaryKey(),
    ownerId: uuid('owner_id').notNull(),
    status: text('status', {
      enum: ['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'],
    }).notNull(),
    background: boolean('background').notNull(),
    /** The key or user that the queue limit applies to; null for a foreground response. */
    keyId: text('key_id'),
    /** May not exist: later responses survive the deletion of earlier ones. */
    previousResponseId: text('previous_response_id'),
    conversationId: text('conversation_id'),
    /** The worker that runs it, or ran it. */
    runnerId: text('runner_id'),
    /** The object as JSON without output; the column `status` takes precedence. */
    object: text('object').notNull(),
    /** The encrypted request body of a queued response. */
    request: text('request'),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
    endedAt: instant('ended_at'),
    /** When its log is deleted; null while it runs and after the deletion. */
    logExpiresAt: instant('log_expires_at'),
    /** Whether its end is still to be announced to webhooks. */
    webhookDue: boolean('webhook_due').notNull().default(false),
  },
  (table) => [
    check(
      'response_status',
      sql`${table.status} in ('queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled')`,
    ),
    index('response_owner_id_created_at').on(table.ownerId, table.createdAt),
    index('response_expires_at').on(table.expiresAt),
    index('response_log_expires_at')
      .on(table.logExpiresAt)
      .where(sql`${table.logExpiresAt} is not null`),
    index('response_queued').on(table.createdAt, table.id).where(sql`${table.status} = 'queued'`),
    index('response_webhook_due').on(table.endedAt).where(sql`${table.webhookDue}`),
    index('response_running').on(table.runnerId).where(sql`${table.status} = 'in_progress'`),
    index('response_unfinished')
      .on(table.keyId)
      .where(sql`${table.status} in ('queued', 'in_progress') and ${table.keyId} is not null`),
  ],
)

/** Input and output items of responses. Ids are not unique, because clients may repeat them. */
export const responseItem = pgTable(
  'response_item',
  {
    responseId: text('response_id')
      .notNull()
      .references(() => response.id, { onDelete: 'cascade' }),
    /** Sorts input before output. */
    direction: text('direction', { enum: ['input', 'output'] }).notNull(),
    position: integer('position').notNull(),
    itemId: text('item_id').notNull(),
    ownerId: uuid('owner_id').notNull(),
    json: text('json').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.responseId, table.direction, table.position] }),
    check('response_item_direction', sql`${table.direction} in ('input', 'output')`),
    index('response_item_owner_id_item_id').on(table.ownerId, table.itemId, table.createdAt),
  ],
)

/** Segments of the frames of a response; `first` and `last` are sequence numbers. */
export const responseLog = pgTable(
  'response_log',
  {
    responseId: text('response_id')
      .notNull()
      .references(() => response.id, { onDelete: 'cascade' }),
    first: integer('first').notNull(),
    last: integer('last').notNull(),
    frames: text('frames').notNull(),
  },
  (table) => [primaryKey({ columns: [table.responseId, table.first] })],
)

/** The workers that run responses, with the time of their last heartbeat by the database's clock. */
export const responseRunner = pgTable('response_runner', {
  id: text('id').primaryKey(),
  seenAt: instant('seen_at').notNull(),
})

export const conversation = pgTable(
  'conversation',
  {
    id: text('id').primaryKey(),
    ownerId: uuid('owner_id').notNull(),
    /** A JSON object. */
    metadata: text('metadata').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [index('conversation_owner_id').on(table.ownerId)],
)

export const conversationItem = pgTable(
  'conversation_item',
  {
    conversationId: text('conversation_id')
      .notNull()
      .references(() => conversation.id, { onDelete: 'cascade' }),
    position: integer('position').notNull(),
    itemId: text('item_id').notNull(),
    ownerId: uuid('owner_id').notNull(),
    json: text('json').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.conversationId, table.position] }),
    uniqueIndex('conversation_item_conversation_id_item_id').on(table.conversationId, table.itemId),
    index('conversation_item_owner_id_item_id').on(table.ownerId, table.itemId, table.createdAt),
  ],
)
