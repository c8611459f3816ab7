import { customType, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core'

const bytes = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' })
const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })

/** Texts of the portal that stand in place of its own, one row a language; none: all as they came. */
export const translation = pgTable('translation', {
  language: text('language').primaryKey(),
  /** JSON: namespace → key → text, in the order of their names. */
  texts: text('texts').notNull(),
  /** Of `texts`; so it can be told cheaply that nothing has changed. */
  sha256: text('sha256').notNull(),
  updatedBy: uuid('updated_by').notNull(),
  updatedAt: instant('updated_at').notNull(),
})

/** How the portal looks: the one row `theme`, and the one row `logo`; none: as it came. */
export const branding = pgTable('branding', {
  part: text('part', { enum: ['theme', 'logo'] }).primaryKey(),
  /** JSON: the theme; of the logo its type, size and what was taken out of it. */
  description: text('description').notNull(),
  /** Of the logo: at most 512 KB, so that it needs no storage of its own. */
  content: bytes('content'),
  sha256: text('sha256').notNull(),
  updatedBy: uuid('updated_by').notNull(),
  updatedAt: instant('updated_at').notNull(),
})
