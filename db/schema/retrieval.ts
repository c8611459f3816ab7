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
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { node } from './files.ts'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/**
 * A vector space: an embedding model and a way of splitting. Its passages are in a separate table,
 * `chunk_<id>`, which is created and dropped with it. Collections with the same model and splitting
 * share it.
 */
export const embeddingIndex = pgTable(
  'embedding_index',
  {
    id: serial('id').primaryKey(),
    model: text('model').notNull(),
    dims: integer('dims').notNull(),
    chunkTokensMax: integer('chunk_tokens_max').notNull(),
    chunkOverlapTokens: integer('chunk_overlap_tokens').notNull(),
    /** The length of the embedded parts of passages; null: passages are embedded whole. */
    partTokensMax: integer('part_tokens_max'),
    /** `building`: the target of a reindex. `warm`: its former source, kept for a revert. */
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
    /** Unique per owner. */
    name: text('name').notNull(),
    /** The name given by vector-store clients: any text, not unique. */
    title: text('title'),
    description: text('description'),
    /** JSON: the metadata of those clients. */
    metadata: text('metadata').notNull().default('{}'),
    ownerId: uuid('owner_id').notNull(),
    /** Whether searches check access to the files or to the collection. */
    accessMode: text('access_mode', { enum: ['files', 'collection'] }).notNull(),
    indexId: integer('index_id')
      .notNull()
      .references(() => embeddingIndex.id),
    /** The index of new files during a reindex. */
    targetIndexId: integer('target_index_id').references(() => embeddingIndex.id),
    /** The collection contains all files of this folder. */
    folderId: uuid('folder_id').references(() => node.id, { onDelete: 'set null' }),
    /** The user whose right to share the folder gives access to its files; null: the owner. */
    folderSharedBy: uuid('folder_shared_by'),
    /** Days without use after which it expires; null: never. */
    expiresAfterDays: integer('expires_after_days'),
    /** The last search or added file, about to the minute; null: none since its creation. */
    lastActiveAt: instant('last_active_at'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    index('collection_expiring').on(table.id).where(sql`${table.expiresAfterDays} is not null`),
    check('collection_access_mode', sql`${table.accessMode} in ('files', 'collection')`),
    uniqueIndex('collection_owner_name').on(table.name, table.ownerId),
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
    /** Override the attributes of the file. */
    attributes: jsonb('attributes').notNull().$type<Record<string, string | number | boolean>>(),
    /** It was added because it is in the collection's folder. */
    followed: boolean('followed').notNull(),
    /** Files that one request added together. */
    batchId: uuid('batch_id'),
    addedBy: uuid('added_by').notNull(),
    /** The user whose right to share the file gives readers access; null: `added_by`. */
    sharedBy: uuid('shared_by'),
    addedAt: instant('added_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.collectionId, table.fileId] }),
    index('collection_file_batch').on(table.batchId).where(sql`${table.batchId} is not null`),
    index('collection_file_file').on(table.fileId),
  ],
)

/** Files that were removed from a collection that follows their folder. */
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

/** The progress of a file in an index. The row exists as long as a collection needs it. */
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
    /** The current step: `waiting`, `parsing`, `splitting`, `embedding`, `indexing`. */
    stage: text('stage').notNull().default('waiting'),
    /** The indexed content; differs from the file's after a change. */
    sha256: text('sha256'),
    chunks: integer('chunks').notNull().default(0),
    attempts: integer('attempts').notNull().default(0),
    errorCode: text('error_code'),
    errorMessage: text('error_message'),
    /** JSON: what the text of the indexed content lacks; null without warnings. */
    warnings: text('warnings'),
    /** The reindex that requested it; null: the file was added to a collection. */
    reindexId: uuid('reindex_id'),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.fileId, table.indexId] }),
    check('file_index_state', sql`${table.state} in ('pending', 'done', 'failed', 'skipped')`),
    index('file_index_index_state').on(table.indexId, table.state),
  ],
)

/** Extracted texts by content, shared by copies and by all indexes. */
export const extractedText = pgTable(
  'extracted_text',
  {
    sha256: text('sha256').notNull(),
    /** The version of the extraction; changes when its results may differ. */
    extractor: text('extractor').notNull(),
    text: text('text').notNull(),
    /** JSON: the start of each page, in characters; null without pages. */
    pages: text('pages'),
    /** JSON: what the text lacks; null without warnings. */
    warnings: text('warnings'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.sha256, table.extractor] })],
)

/** Files that were deleted after a running reindex had completed them; they stay counted. */
export const reindexDeletedFile = pgTable(
  'reindex_deleted_file',
  {
    reindexId: uuid('reindex_id').notNull(),
    fileId: uuid('file_id').notNull(),
  },
  (table) => [primaryKey({ columns: [table.reindexId, table.fileId] })],
)

/** A move from one index to another. Its progress is counted in `file_index`. */
export const reindex = pgTable(
  'reindex',
  {
    id: uuid('id').primaryKey(),
    sourceIndexId: integer('source_index_id').notNull(),
    targetIndexId: integer('target_index_id').notNull(),
    /** JSON: the specifications of the indexes, because one may be dropped. */
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
    /** 1, 2, 3 …; increases with each state change. */
    version: integer('version').notNull().default(1),
    /** It may complete with failed files. */
    accepted: boolean('accepted').notNull().default(false),
    /** Files in scope at the start; later ones are counted separately. */
    total: integer('total').notNull(),
    /** The final counters; null while they are counted. */
    endCounters: text('end_counters'),
    lastError: text('last_error'),
    startedBy: uuid('started_by').notNull(),
    createdAt: instant('created_at').notNull(),
    startedAt: instant('started_at'),
    finishedAt: instant('finished_at'),
    /** How long the source index is kept for a revert; null: it is not kept. */
    warmUntil: instant('warm_until'),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [index('reindex_source').on(table.sourceIndexId, table.status)],
)
