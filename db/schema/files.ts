import { sql } from 'drizzle-orm'
import {
  type AnyPgColumn,
  bigint,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  smallint,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** Files and folders: one tree per owner, who owns everything in it. */
export const node = pgTable(
  'node',
  {
    /** UUIDv7: sorting by id is sorting by age. */
    id: uuid('id').primaryKey(),
    kind: text('kind', { enum: ['file', 'folder'] }).notNull(),
    /** Null: the root of the owner's tree. */
    parentId: uuid('parent_id').references((): AnyPgColumn => node.id, { onDelete: 'cascade' }),
    /** Not a foreign key: users are known by their tokens before they have a row. */
    ownerId: uuid('owner_id').notNull(),
    createdBy: uuid('created_by').notNull(),
    /** As given, in Unicode form NFC. */
    name: text('name').notNull(),
    /** The case-folded name, unique among the children of a folder outside the trash. */
    nameKey: text('name_key').notNull(),
    /** When it was moved to the trash; `trash_id` is the deleted node that contained it. */
    trashedAt: instant('trashed_at'),
    trashId: uuid('trash_id'),
    /** 1, 2, 3 …; increases with each change. */
    version: integer('version').notNull().default(1),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
  },
  (table) => [
    check('node_kind', sql`${table.kind} in ('file', 'folder')`),
    uniqueIndex('node_name')
      .on(
        table.ownerId,
        sql`coalesce(${table.parentId}, '00000000-0000-0000-0000-000000000000'::uuid)`,
        table.nameKey,
      )
      .where(sql`${table.trashedAt} is null`),
    index('node_parent').on(table.parentId, table.kind, table.nameKey, table.id),
    index('node_owner').on(table.ownerId, table.id),
    // For the top level in order, and for the search by name.
    index('node_top')
      .on(
        table.ownerId,
        sql`coalesce(${table.parentId}, '00000000-0000-0000-0000-000000000000'::uuid)`,
        table.kind,
        table.nameKey,
        table.id,
      )
      .where(sql`${table.trashedAt} is null`)
      .concurrently(),
    index('node_owner_name')
      .on(table.ownerId, table.kind, table.nameKey, table.id)
      .where(sql`${table.trashedAt} is null`)
      .concurrently(),
    index('node_trash').on(table.trashId).where(sql`${table.trashId} is not null`),
    index('node_trashed_at').on(table.trashedAt).where(sql`${table.trashedAt} is not null`),
  ],
)

export const file = pgTable(
  'file',
  {
    nodeId: uuid('node_id')
      .primaryKey()
      .references(() => node.id, { onDelete: 'cascade' }),
    bytes: bigint('bytes', { mode: 'number' }).notNull(),
    mimeType: text('mime_type').notNull(),
    /** In hex; the key of the content in the storage. */
    sha256: text('sha256')
      .notNull()
      .references(() => blob.sha256),
    /** Flat: text, numbers, booleans. */
    attributes: jsonb('attributes').notNull().$type<Record<string, string | number | boolean>>(),
    purpose: text('purpose').notNull(),
    expiresAt: instant('expires_at'),
  },
  (table) => [
    index('file_sha256').on(table.sha256),
    index('file_expires_at').on(table.expiresAt).where(sql`${table.expiresAt} is not null`),
  ],
)

/** Stored contents; unreferenced ones are deleted after a while. */
export const blob = pgTable('blob', {
  sha256: text('sha256').primaryKey(),
  bytes: bigint('bytes', { mode: 'number' }).notNull(),
  /** When it was last uploaded, so that a new content is not deleted before its file exists. */
  putAt: instant('put_at').notNull(),
})

/** Files that are uploaded in parts; rows of ended uploads are kept for a while. */
export const upload = pgTable(
  'upload',
  {
    id: uuid('id').primaryKey(),
    ownerId: uuid('owner_id').notNull(),
    /** A pending upload past `expires_at` is expired. */
    status: text('status', { enum: ['pending', 'completed', 'cancelled'] }).notNull(),
    filename: text('filename').notNull(),
    purpose: text('purpose').notNull(),
    /** Of the whole file, as announced. */
    bytes: bigint('bytes', { mode: 'number' }).notNull(),
    /** The lifetime of the file; null: unlimited. */
    fileLifetimeS: integer('file_lifetime_s'),
    /** Of a completed upload; the digest is that of the ids of its parts. */
    fileId: uuid('file_id'),
    partsDigest: text('parts_digest'),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    check('upload_status', sql`${table.status} in ('pending', 'completed', 'cancelled')`),
    index('upload_owner').on(table.ownerId),
    index('upload_expires_at').on(table.expiresAt),
  ],
)

/** Parts of pending uploads. The sweep keeps their contents. */
export const uploadPart = pgTable(
  'upload_part',
  {
    id: uuid('id').primaryKey(),
    uploadId: uuid('upload_id')
      .notNull()
      .references(() => upload.id, { onDelete: 'cascade' }),
    /** No foreign key: versions without this table delete contents that no file uses. */
    sha256: text('sha256').notNull(),
    bytes: bigint('bytes', { mode: 'number' }).notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    index('upload_part_upload').on(table.uploadId),
    index('upload_part_sha256').on(table.sha256),
  ],
)

/** Access to a file, a folder with its contents, or a collection. */
export const share = pgTable(
  'share',
  {
    id: uuid('id').primaryKey(),
    resourceType: text('resource_type', { enum: ['node', 'collection'] }).notNull(),
    resourceId: uuid('resource_id').notNull(),
    principalType: text('principal_type', { enum: ['user', 'group', 'everyone'] }).notNull(),
    /** A user's id, a group's name, or `*`. */
    principalId: text('principal_id').notNull(),
    /** 1 viewer, 2 editor, 3 manager; the owner is 4 and has no row. */
    role: smallint('role').notNull(),
    grantedBy: uuid('granted_by').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    check('share_role', sql`${table.role} between 1 and 3`),
    uniqueIndex('share_once').on(
      table.resourceType,
      table.resourceId,
      table.principalType,
      table.principalId,
    ),
    index('share_principal').on(table.principalType, table.principalId, table.resourceType),
  ],
)
