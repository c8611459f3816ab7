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

// JSON is kept as text: `jsonb` refuses a NUL, which any text of a model or a client may hold. An
// owner is no reference to `app_user`: a user is known by a token before their row is there.

export const response = pgTable(
  'response',
  {
    id: text('id').primaryKey(),
    ownerId: uuid('owner_id').notNull(),
    status: text('status', {
      enum: ['queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled'],
    }).notNull(),
    background: boolean('background').notNull(),
    /** In whose queue it was accepted; null for one that never stood in a queue. */
    keyId: text('key_id'),
    /** May be gone: deleting a response leaves those that follow it. */
    previousResponseId: text('previous_response_id'),
    conversationId: text('conversation_id'),
    /** The process that runs it, or ran it. */
    runnerId: text('runner_id'),
    /** The object as JSON, its output left empty; `status` above is the true one. */
    object: text('object').notNull(),
    /** The sealed body of the request, as long as it is queued. */
    request: text('request'),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
    endedAt: instant('ended_at'),
    /** When its log is to be dropped; null while it runs, and once that was done. */
    logExpiresAt: instant('log_expires_at'),
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
    index('response_running').on(table.runnerId).where(sql`${table.status} = 'in_progress'`),
    index('response_unfinished')
      .on(table.keyId)
      .where(sql`${table.status} in ('queued', 'in_progress') and ${table.keyId} is not null`),
  ],
)

/** The own input and the output of a response. A client may send an id again, so none is unique. */
export const responseItem = pgTable(
  'response_item',
  {
    responseId: text('response_id')
      .notNull()
      .references(() => response.id, { onDelete: 'cascade' }),
    /** In the order of the alphabet, so that input is read before output. */
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

/** The frames of a response, in pieces; `first` and `last` are sequence numbers. */
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

/** The processes that run responses, and when each last said that it lives, by the database's clock. */
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

/** An item is in a conversation once. */
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
