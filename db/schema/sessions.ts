import { sql } from 'drizzle-orm'
import {
  check,
  customType,
  index,
  integer,
  pgTable,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core'
import { appUser } from './auth.ts'

const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' })
const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** Sessions of browsers, one row each. A session that ended has no row. */
export const loginSession = pgTable(
  'login_session',
  {
    /** UUIDv7: sorting by id is sorting by age. It is public; the secret is in the cookie. */
    id: uuid('id').primaryKey(),
    userId: uuid('user_id')
      .notNull()
      .references(() => appUser.id, { onDelete: 'cascade' }),
    /** SHA-256 of the value of the cookie. */
    hash: bytes('hash').notNull().unique(),
    /** How the user logged in: `oidc`, `token` or `code`. */
    method: text('method').notNull(),
    userAgent: text('user_agent').notNull(),
    createdAt: instant('created_at').notNull(),
    lastUsedAt: instant('last_used_at').notNull(),
    /** Its end, however much it is used. */
    expiresAt: instant('expires_at').notNull(),
    /** When the tokens of the identity provider must be refreshed; null: never. */
    renewAt: instant('renew_at'),
    /** Of the identity provider, encrypted. */
    refreshToken: text('refresh_token'),
    /** The replica that refreshes the tokens holds them until then. */
    renewingUntil: instant('renewing_until'),
    /** Encrypted: names the session in a logout at the provider. */
    idToken: text('id_token'),
    /** The `sid` of the identity provider. */
    providerSession: text('provider_session'),
  },
  (table) => [
    index('login_session_user_id_id').on(table.userId, table.id),
    index('login_session_expires_at').on(table.expiresAt),
    index('login_session_provider_session').on(table.providerSession),
  ],
)

/** Codes that work once: of the link that a development gateway prints, and of device logins. */
export const loginCode = pgTable(
  'login_code',
  {
    /** SHA-256 of the code. */
    hash: bytes('hash').primaryKey(),
    kind: text('kind', { enum: ['start', 'device'] }).notNull(),
    status: text('status', { enum: ['pending', 'approved', 'denied'] })
      .notNull()
      .default('pending'),
    /** What the user of a device login types, without its hyphen. */
    userCode: text('user_code').unique(),
    /** Of the device. */
    name: text('name').notNull().default(''),
    /** The user who approved a device login. */
    userId: uuid('user_id').references(() => appUser.id, { onDelete: 'cascade' }),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
    polledAt: instant('polled_at'),
  },
  (table) => [
    index('login_code_expires_at').on(table.expiresAt),
    check('login_code_kind', sql`${table.kind} in ('start', 'device')`),
    check('login_code_status', sql`${table.status} in ('pending', 'approved', 'denied')`),
  ],
)

/** Attempts of clients to log in, in a window that begins with the first one. */
export const loginAttempt = pgTable(
  'login_attempt',
  {
    /** SHA-256 of the kind of attempt and the client. */
    hash: bytes('hash').primaryKey(),
    attempts: integer('attempts').notNull(),
    /** The end of the window. */
    endsAt: instant('ends_at').notNull(),
  },
  (table) => [index('login_attempt_ends_at').on(table.endsAt)],
)
