import { sql } from 'drizzle-orm'
import {
  bigint,
  check,
  customType,
  index,
  pgTable,
  pgView,
  primaryKey,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core'

const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' })
const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** Everybody who was ever seen with a token. */
export const appUser = pgTable(
  'app_user',
  {
    /** Derived from the subject, so that it is known without asking the database. */
    id: uuid('id').primaryKey(),
    subject: text('subject').notNull().unique(),
    kind: text('kind', { enum: ['user', 'service'] })
      .notNull()
      .default('user'),
    /** The `iat` of the token that the groups were taken from, in Unix seconds. */
    groupsSeenAtS: bigint('groups_seen_at_s', { mode: 'number' }).notNull().default(0),
    /** As the token or the maker of a service account calls them. */
    name: text('name'),
    /** Since then nothing that they hold is accepted. */
    disabledAt: instant('disabled_at'),
    lastSeenAt: instant('last_seen_at'),
    /** Of a service account: who made it. */
    createdBy: uuid('created_by'),
    createdAt: instant('created_at').notNull().defaultNow(),
  },
  (table) => [check('app_user_kind', sql`${table.kind} in ('user', 'service')`)],
)

/** What the members of a group may do. A group without a row here grants nothing. */
export const appGroup = pgTable('app_group', {
  name: text('name').primaryKey(),
  permissions: text('permissions').array().notNull(),
  description: text('description').notNull().default(''),
  /** The word in a token that stands for this group; null: the name of the group. */
  idpClaim: text('idp_claim').unique(),
  createdAt: instant('created_at').notNull().defaultNow(),
  updatedAt: instant('updated_at').notNull().defaultNow(),
})

/**
 * The permissions that this database has been started with. One that is not here yet is new, and is
 * granted to the shipped administrators.
 */
export const knownPermission = pgTable('known_permission', {
  name: text('name').primaryKey(),
})

/**
 * No reference to `app_group`: an identity provider sends names that mean nothing here (yet). Rows
 * of source `idp` hold the words of the token; the view `user_group` says which groups they mean.
 */
export const groupMember = pgTable(
  'group_member',
  {
    userId: uuid('user_id')
      .notNull()
      .references(() => appUser.id, { onDelete: 'cascade' }),
    groupName: text('group_name').notNull(),
    /** Only rows of source `idp` follow the tokens; what was given by hand stays. */
    source: text('source', { enum: ['idp', 'manual'] }).notNull(),
    /** Of a row given by hand: by whom. */
    grantedBy: uuid('granted_by'),
    grantedAt: instant('granted_at').notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.groupName, table.source] }),
    index('group_member_group_name').on(table.groupName),
    check('group_member_source', sql`${table.source} in ('idp', 'manual')`),
  ],
)

/** Who is in which group: given by hand, or as the words of the last token mean it. */
export const userGroup = pgView('user_group', {
  userId: uuid('user_id').notNull(),
  groupName: text('group_name').notNull(),
  source: text('source', { enum: ['idp', 'manual'] }).notNull(),
}).existing()

export const apiKey = pgTable(
  'api_key',
  {
    /** UUIDv7: sorting by id is sorting by age. */
    id: uuid('id').primaryKey(),
    userId: uuid('user_id')
      .notNull()
      .references(() => appUser.id, { onDelete: 'cascade' }),
    name: text('name').notNull(),
    /** SHA-256 of the key, or HMAC-SHA-256 under the configured pepper. */
    hash: bytes('hash').notNull().unique(),
    masked: text('masked').notNull(),
    expiresAt: instant('expires_at'),
    lastUsedAt: instant('last_used_at'),
    revokedAt: instant('revoked_at'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [index('api_key_user_id_id').on(table.userId, table.id)],
)
