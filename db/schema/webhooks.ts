import { sql } from 'drizzle-orm'
import {
  boolean,
  check,
  index,
  integer,
  pgTable,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** URLs that receive an event when background work ends. */
export const webhookEndpoint = pgTable(
  'webhook_endpoint',
  {
    id: text('id').primaryKey(),
    /** Who created it; its events are those of this user, unless it is for the organisation. */
    ownerId: uuid('owner_id').notNull(),
    scope: text('scope', { enum: ['user', 'organization'] }).notNull(),
    name: text('name').notNull(),
    url: text('url').notNull(),
    /** A JSON array. */
    eventTypes: text('event_types').notNull(),
    /** Encrypted; the previous one signs too until `previous_until`. */
    secret: text('secret').notNull(),
    secretHint: text('secret_hint').notNull(),
    previousSecret: text('previous_secret'),
    previousUntil: instant('previous_until'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    check('webhook_endpoint_scope', sql`${table.scope} in ('user', 'organization')`),
    index('webhook_endpoint_owner').on(table.ownerId, table.createdAt, table.id),
    index('webhook_endpoint_organization')
      .on(table.createdAt, table.id)
      .where(sql`${table.scope} = 'organization'`),
  ],
)

/** One event for one endpoint, and the attempts to deliver it. */
export const webhookDelivery = pgTable(
  'webhook_delivery',
  {
    /** The header `webhook-id`, the same in every attempt. */
    id: text('id').primaryKey(),
    endpointId: text('endpoint_id')
      .notNull()
      .references(() => webhookEndpoint.id, { onDelete: 'cascade' }),
    eventId: text('event_id').notNull(),
    eventType: text('event_type').notNull(),
    /** The body. */
    payload: text('payload').notNull(),
    status: text('status', { enum: ['pending', 'delivered', 'failed'] }).notNull(),
    /** Test events are sent once. */
    isTest: boolean('is_test').notNull().default(false),
    attempts: integer('attempts').notNull().default(0),
    /** A JSON array of the latest attempts: time, status, error, duration. */
    attemptLog: text('attempt_log').notNull().default('[]'),
    createdAt: instant('created_at').notNull(),
    /** No attempt begins later. */
    giveUpAt: instant('give_up_at').notNull(),
    /** Null: it is delivered or failed. */
    nextAttemptAt: instant('next_attempt_at'),
    endedAt: instant('ended_at'),
  },
  (table) => [
    check('webhook_delivery_status', sql`${table.status} in ('pending', 'delivered', 'failed')`),
    uniqueIndex('webhook_delivery_event').on(table.endpointId, table.eventId),
    index('webhook_delivery_endpoint').on(table.endpointId, table.createdAt, table.id),
    index('webhook_delivery_ended').on(table.endedAt).where(sql`${table.endedAt} is not null`),
  ],
)
