import { customType, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core'

const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' })
const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** Replacement texts of the portal, one row per language. */
export const translation = pgTable('translation', {
  language: text('language').primaryKey(),
  /** JSON: namespace → key → text, sorted by name. */
  texts: text('texts').notNull(),
  /** Of `texts`, for cheap change detection. */
  sha256: text('sha256').notNull(),
  updatedBy: uuid('updated_by').notNull(),
  updatedAt: instant('updated_at').notNull(),
})

/** The theme and logo of the portal, at most one row each; without rows, the defaults apply. */
export const branding = pgTable('branding', {
  part: text('part', { enum: ['theme', 'logo'] }).primaryKey(),
  /** JSON: the theme; for the logo its type, size and removed content. */
  description: text('description').notNull(),
  /** Of the logo: at most 512 KB, small enough for the database. */
  content: bytes('content'),
  sha256: text('sha256').notNull(),
  updatedBy: uuid('updated_by').notNull(),
  updatedAt: instant('updated_at').notNull(),
})
