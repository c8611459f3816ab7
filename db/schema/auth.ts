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

/** Users and service accounts that have presented a token. */
export const appUser = pgTable(
  'app_user',
  {
    /** Derived from the subject, so that it is known without a query. */
    id: uuid('id').primaryKey(),
    subject: text('subject').notNull().unique(),
    kind: text('kind', { enum: ['user', 'service'] })
      .notNull()
      .default('user'),
    /** The `iat` of the token that set the groups, in Unix seconds. */
    groupsSeenAtS: bigint('groups_seen_at_s', { mode: 'number' }).notNull().default(0),
    /** From the token, or given by the creator of a service account. */
    name: text('name'),
    /** Credentials are rejected from then on. */
    disabledAt: instant('disabled_at'),
    lastSeenAt: instant('last_seen_at'),
    /** Of a service account. */
    createdBy: uuid('created_by'),
    createdAt: instant('created_at').notNull().defaultNow(),
  },
  (table) => [check('app_user_kind', sql`${table.kind} in ('user', 'service')`)],
)

/** The permissions of groups. A group without a row grants none. */
export const appGroup = pgTable('app_group', {
  name: text('name').primaryKey(),
  permissions: text('permissions').array().notNull(),
  description: text('description').notNull().default(''),
  /** The token claim value that maps to this group; null: the name of the group. */
  idpClaim: text('idp_claim').unique(),
  createdAt: instant('created_at').notNull().defaultNow(),
  updatedAt: instant('updated_at').notNull().defaultNow(),
})

/**
 * The permissions that earlier starts knew. A new one is granted to the shipped administrators.
 */
export const knownPermission = pgTable('known_permission', {
  name: text('name').primaryKey(),
})

/**
 * Not a foreign key to `app_group`: an identity provider may send unknown names. Rows of source `idp`
 * hold claim values of the token; the view `user_group` maps them to groups.
 */
export const groupMember = pgTable(
  'group_member',
  {
    userId: uuid('user_id')
      .notNull()
      .references(() => appUser.id, { onDelete: 'cascade' }),
    groupName: text('group_name').notNull(),
    /** Tokens replace the rows of source `idp` only. */
    source: text('source', { enum: ['idp', 'manual'] }).notNull(),
    /** Of a manual row. */
    grantedBy: uuid('granted_by'),
    grantedAt: instant('granted_at').notNull().defaultNow(),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.groupName, table.source] }),
    index('group_member_group_name').on(table.groupName),
    check('group_member_source', sql`${table.source} in ('idp', 'manual')`),
  ],
)

/** Group memberships: manual ones and those of the last token. */
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
    /** Names and patterns of models; null: every model of the owner. */
    models: text('models').array(),
    /** Null: everything that the owner may do. */
    scopes: text('scopes').array(),
    /** Addresses and networks that it may be used from; null: any. */
    allowedIps: text('allowed_ips').array(),
    /** JSON; null: no limits of its own. */
    limits: text('limits'),
    rotatedAt: instant('rotated_at'),
    /** Of the secret that the last rotation replaced, */
    previousHash: bytes('previous_hash').unique(),
    /** and until when it works. */
    previousExpiresAt: instant('previous_expires_at'),
  },
  (table) => [index('api_key_user_id_id').on(table.userId, table.id)],
)
