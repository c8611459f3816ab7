import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })
const count = (name: string) => bigint(name, { mode: 'number' }).notNull().default(0)

/** The usage ledger: one row for each ended call to a model and each speech session or file. */
export const usageRecord = pgTable(
  'usage_record',
  {
    /** UUIDv7 of the end: sorting by id is sorting by end. */
    id: uuid('id').primaryKey(),
    /** The statement that wrote it, together with others. */
    batchId: uuid('batch_id').notNull(),
    endedAt: instant('ended_at').notNull(),
    kind: text('kind').notNull(),
    /** Null: work of the gateway itself, such as indexing. */
    userId: uuid('user_id'),
    keyId: uuid('key_id'),
    agentId: uuid('agent_id'),
    /** The API of the request; null for work without one. */
    surface: text('surface'),
    /** The name in the catalogue, or of the speech engine. */
    model: text('model').notNull(),
    /** The name in the request, if it is another one. */
    requestedModel: text('requested_model'),
    /** Null: no upstream was tried. */
    upstream: text('upstream'),
    upstreamModel: text('upstream_model'),
    outcome: text('outcome').notNull(),
    errorKind: text('error_kind'),
    retries: integer('retries').notNull().default(0),
    requestId: text('request_id').notNull(),
    responseId: text('response_id'),
    inputTokens: count('input_tokens'),
    /** Of the input tokens. */
    cachedTokens: count('cached_tokens'),
    cacheWriteTokens: count('cache_write_tokens'),
    outputTokens: count('output_tokens'),
    /** Of the output tokens. */
    reasoningTokens: count('reasoning_tokens'),
    /** The upstream reported no tokens. */
    estimated: boolean('estimated').notNull().default(false),
    audioMs: count('audio_ms'),
    /** In billionths of the currency; null without a price. */
    costNanos: bigint('cost_nanos', { mode: 'number' }),
    queueMs: integer('queue_ms'),
    firstEventMs: integer('first_event_ms'),
    durationMs: bigint('duration_ms', { mode: 'number' }).notNull(),
  },
  (table) => [index('usage_record_user').on(table.userId, table.id)],
)

/** Written records that the rollups do not contain yet; deleted in the transaction that adds them. */
export const usageBatch = pgTable('usage_batch', {
  id: uuid('id').primaryKey(),
  /** The range of the ids of its records. */
  firstId: uuid('first_id').notNull(),
  lastId: uuid('last_id').notNull(),
  records: integer('records').notNull(),
})

/** A key of a primary key cannot be null. */
const none = '00000000-0000-0000-0000-000000000000'
const idOrNone = (name: string) =>
  uuid(name)
    .notNull()
    .default(sql.raw(`'${none}'`))

/** What records are summed by. Absent ids are zero, absent names empty. */
const sumKeys = {
  userId: idOrNone('user_id'),
  keyId: idOrNone('key_id'),
  agentId: idOrNone('agent_id'),
  model: text('model').notNull(),
  upstream: text('upstream').notNull(),
  kind: text('kind').notNull(),
  outcome: text('outcome').notNull(),
}
const sums = {
  requests: count('requests'),
  /** Of the requests, those without tokens of the upstream. */
  estimated: count('estimated'),
  retries: count('retries'),
  inputTokens: count('input_tokens'),
  cachedTokens: count('cached_tokens'),
  cacheWriteTokens: count('cache_write_tokens'),
  outputTokens: count('output_tokens'),
  reasoningTokens: count('reasoning_tokens'),
  audioMs: count('audio_ms'),
  /** Null: no record has a price. */
  costNanos: bigint('cost_nanos', { mode: 'number' }),
  durationMs: count('duration_ms'),
}

/** Sums of the records of an hour. */
export const usageHour = pgTable(
  'usage_hour',
  { hour: instant('hour').notNull(), ...sumKeys, ...sums },
  ({ hour, userId, keyId, kind, outcome, agentId, model, upstream }) => [
    primaryKey({
      name: 'usage_hour_key',
      columns: [hour, userId, keyId, kind, outcome, agentId, model, upstream],
    }),
    index('usage_hour_user').on(userId, hour),
  ],
)

/** The same of a day, in UTC: a long range has a twentieth of the rows. */
export const usageDay = pgTable(
  'usage_day',
  { day: instant('day').notNull(), ...sumKeys, ...sums },
  ({ day, userId, keyId, kind, outcome, agentId, model, upstream }) => [
    primaryKey({
      name: 'usage_day_key',
      columns: [day, userId, keyId, kind, outcome, agentId, model, upstream],
    }),
    index('usage_day_user').on(userId, day),
  ],
)
