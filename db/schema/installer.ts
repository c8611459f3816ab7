import { sql } from 'drizzle-orm'
import {
  bigint,
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
const byteCount = (name: string) => bigint(name, { mode: 'number' })

/** Installations and verifications of models. */
export const download = pgTable(
  'download',
  {
    /** UUIDv7: sorting by id is sorting by age. */
    id: uuid('id').primaryKey(),
    /** The name under which the model is installed. */
    model: text('model').notNull(),
    /** JSON: the task with its source, without credentials. */
    source: text('source').notNull(),
    /** The revision of the source, once resolved. */
    revision: text('revision'),
    status: text('status', {
      enum: [
        'queued',
        'resolving',
        'downloading',
        'verifying',
        'committing',
        'paused',
        'completed',
        'failed',
        'cancelled',
      ],
    }).notNull(),
    /** The state that users requested; the running worker follows it. */
    wanted: text('wanted', { enum: ['run', 'pause', 'cancel'] }).notNull(),
    bytesTotal: byteCount('bytes_total'),
    /** Of all files; never decreases. */
    bytesCompleted: byteCount('bytes_completed').notNull().default(0),
    bytesPerSecond: byteCount('bytes_per_second'),
    /** JSON: files with size and progress. */
    files: text('files').notNull(),
    /** JSON: code and message of the last failure. */
    error: text('error'),
    attempts: integer('attempts').notNull().default(0),
    startedBy: uuid('started_by').notNull(),
    startedAt: instant('started_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    finishedAt: instant('finished_at'),
  },
  (table) => [
    check(
      'download_status',
      sql`${table.status} in ('queued', 'resolving', 'downloading', 'verifying', 'committing', 'paused', 'completed', 'failed', 'cancelled')`,
    ),
    check('download_wanted', sql`${table.wanted} in ('run', 'pause', 'cancel')`),
    // One active download per model.
    uniqueIndex('download_model').on(table.model).where(sql`${table.finishedAt} is null`),
    index('download_finished_at').on(table.finishedAt),
  ],
)

/** The last log lines of active downloads. */
export const downloadLine = pgTable(
  'download_line',
  {
    downloadId: uuid('download_id')
      .notNull()
      .references(() => download.id, { onDelete: 'cascade' }),
    /** 1, 2, 3 … */
    seq: integer('seq').notNull(),
    at: instant('at').notNull(),
    level: text('level', { enum: ['info', 'warn', 'error'] }).notNull(),
    message: text('message').notNull(),
  },
  (table) => [primaryKey({ columns: [table.downloadId, table.seq] })],
)
