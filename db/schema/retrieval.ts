import { sql } from 'drizzle-orm'
import {
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  serial,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core'
import { node } from './files.ts'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/**
 * One space of vectors: a model and a way of splitting. Its passages are in a table of their own,
 * `chunk_<id>`, that comes and goes with it. Collections of the same model and splitting share it.
 */
export const embeddingIndex = pgTable(
  'embedding_index',
  {
    id: serial('id').primaryKey(),
    model: text('model').notNull(),
    dims: integer('dims').notNull(),
    chunkTokensMax: integer('chunk_tokens_max').notNull(),
    chunkOverlapTokens: integer('chunk_overlap_tokens').notNull(),
    /** `building`: the target of a reindex. `warm`: its former source, kept to go back. */
    state: text('state', { enum: ['building', 'active', 'warm', 'dropping'] }).notNull(),
    warmUntil: instant('warm_until'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    check(
      'embedding_index_state',
      sql`${table.state} in ('building', 'active', 'warm', 'dropping')`,
    ),
  ],
)

export const collection = pgTable(
  'collection',
  {
    id: uuid('id').primaryKey(),
    name: text('name').notNull().unique(),
    /** What clients of vector stores called it, who may use any words and the same ones twice. */
    title: text('title'),
    description: text('description'),
    /** JSON: what those clients keep with it. */
    metadata: text('metadata').notNull().default('{}'),
    ownerId: uuid('owner_id').notNull(),
    /** Whether rights on the files decide who finds them, or rights on the collection. */
    accessMode: text('access_mode', { enum: ['files', 'collection'] }).notNull(),
    indexId: integer('index_id')
      .notNull()
      .references(() => embeddingIndex.id),
    /** While a reindex runs, where new files go. */
    targetIndexId: integer('target_index_id').references(() => embeddingIndex.id),
    /** Everything in this folder is in the collection. */
    folderId: uuid('folder_id').references(() => node.id, { onDelete: 'set null' }),
    /** Whose right to share the folder opens the files in it; null: the owner's. */
    folderSharedBy: uuid('folder_shared_by'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    check('collection_access_mode', sql`${table.accessMode} in ('files', 'collection')`),
    index('collection_owner').on(table.ownerId),
    index('collection_folder').on(table.folderId),
  ],
)

export const collectionFile = pgTable(
  'collection_file',
  {
    collectionId: uuid('collection_id')
      .notNull()
      .references(() => collection.id, { onDelete: 'cascade' }),
    fileId: uuid('file_id')
      .notNull()
      .references(() => node.id, { onDelete: 'cascade' }),
    /** Over those of the file itself. */
    attributes: jsonb('attributes').notNull().$type<Record<string, string | number | boolean>>(),
    /** Whether it is here since it is in the collection's folder. */
    followed: boolean('followed').notNull(),
    /** Files that one request added together. */
    batchId: uuid('batch_id'),
    addedBy: uuid('added_by').notNull(),
    /** Whose right to share the file opens it to readers of the collection; null: `added_by`. */
    sharedBy: uuid('shared_by'),
    addedAt: instant('added_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.collectionId, table.fileId] }),
    index('collection_file_batch').on(table.batchId).where(sql`${table.batchId} is not null`),
    index('collection_file_file').on(table.fileId),
  ],
)

/** Files that a manager of the file has removed from a collection that follows their folder. */
export const collectionExclusion = pgTable(
  'collection_exclusion',
  {
    collectionId: uuid('collection_id')
      .notNull()
      .references(() => collection.id, { onDelete: 'cascade' }),
    fileId: uuid('file_id')
      .notNull()
      .references(() => node.id, { onDelete: 'cascade' }),
    excludedBy: uuid('excluded_by').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.collectionId, table.fileId] }),
    index('collection_exclusion_file').on(table.fileId),
  ],
)

/** How far a file has come in an index. The row is there as long as a collection wants it so. */
export const fileIndex = pgTable(
  'file_index',
  {
    fileId: uuid('file_id')
      .notNull()
      .references(() => node.id, { onDelete: 'cascade' }),
    indexId: integer('index_id')
      .notNull()
      .references(() => embeddingIndex.id, { onDelete: 'cascade' }),
    state: text('state', { enum: ['pending', 'done', 'failed', 'skipped'] }).notNull(),
    /** What is being done: `waiting`, `parsing`, `splitting`, `embedding`, `indexing`. */
    stage: text('stage').notNull().default('waiting'),
    /** The content that is in the index; another than the file's: the file has changed since. */
    sha256: text('sha256'),
    chunks: integer('chunks').notNull().default(0),
    attempts: integer('attempts').notNull().default(0),
    errorCode: text('error_code'),
    errorMessage: text('error_message'),
    /** The reindex that has asked for it; null: whoever put the file into a collection. */
    reindexId: uuid('reindex_id'),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.fileId, table.indexId] }),
    check('file_index_state', sql`${table.state} in ('pending', 'done', 'failed', 'skipped')`),
    index('file_index_index_state').on(table.indexId, table.state),
  ],
)

/** The text of a content, so that no content is read twice; shared by copies and by every index. */
export const extractedText = pgTable(
  'extracted_text',
  {
    sha256: text('sha256').notNull(),
    /** Another one for every release of the extraction that may read it differently. */
    extractor: text('extractor').notNull(),
    text: text('text').notNull(),
    /** JSON: where each page begins, in characters. Null where there are no pages. */
    pages: text('pages'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.sha256, table.extractor] })],
)

/** A change from one index to another. What it has done is counted from `file_index`. */
export const reindex = pgTable(
  'reindex',
  {
    id: uuid('id').primaryKey(),
    sourceIndexId: integer('source_index_id').notNull(),
    targetIndexId: integer('target_index_id').notNull(),
    /** JSON: what the two indexes are, for when one of them is gone. */
    sourceSpec: text('source_spec').notNull(),
    targetSpec: text('target_spec').notNull(),
    /** JSON: the ids of its collections. */
    collectionIds: text('collection_ids').notNull(),
    status: text('status', {
      enum: [
        'queued',
        'running',
        'paused',
        'needs_attention',
        'verifying',
        'completed',
        'cancelling',
        'cancelled',
        'reverting',
        'reverted',
      ],
    }).notNull(),
    /** 1, 2, 3 … with each change of its course. */
    version: integer('version').notNull().default(1),
    /** Whether it may end although files have failed. */
    accepted: boolean('accepted').notNull().default(false),
    /** Files that were in scope at the start; what came later is counted apart. */
    total: integer('total').notNull(),
    /** The counters as they were at the end; before it, they are counted. */
    endCounters: text('end_counters'),
    lastError: text('last_error'),
    startedBy: uuid('started_by').notNull(),
    createdAt: instant('created_at').notNull(),
    startedAt: instant('started_at'),
    finishedAt: instant('finished_at'),
    /** How long the source is kept to go back to; null: it is not, or not any more. */
    warmUntil: instant('warm_until'),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [index('reindex_source').on(table.sourceIndexId, table.status)],
)
