import { eq, sql } from 'drizzle-orm'
import { changedFields } from '#audit/audit.ts'
import type { Config } from '#config/schema.ts'
import { recordChange } from '#db/audit-entries.ts'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { branding } from '#db/schema/portal.ts'
import { type IsExpected, requireExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { contrastOf } from './colors.ts'
import { defaultLogo, type LogoImage } from './logo/image.ts'
import { contrastMessage, contrastParam } from './record.ts'
import { defaultTheme, type Theme } from './theme.ts'

export type ThemeView = {
  readonly theme: Theme
  /** The hash of the theme, without the logo. */
  readonly sha256: string
  /** A signed path: it needs no credential. */
  readonly logoUrl: string
}

export type LogoHead = Omit<LogoImage, 'content'> & { readonly sha256: string }

type Change = {
  readonly principal: RequestPrincipal
  /** The `If-Match` condition. */
  readonly isExpected: IsExpected
}

/** The parameters of a signed logo link: a prefix of the logo's hash, and its signature. */
export type LogoLink = { readonly version: string; readonly signature: string }

type Row = typeof branding.$inferSelect
/** A part without its bytes. */
type PartHead = Pick<Row, 'part' | 'description' | 'sha256'>

const versionChars = 12

export type Branding = ReturnType<typeof createBranding>

/**
 * The theme and logo of the portal, at most one row each. Nothing is cached, so a change is visible on
 * all replicas at once. Changes throw `precondition_failed` if their `If-Match` condition fails.
 */
export function createBranding(
  { drizzle }: Database,
  {
    settings,
    sealer,
    now,
  }: {
    settings: Config['branding']
    sealer: Pick<Sealer, 'sign' | 'hasSigned'>
    now: () => Date
  },
) {
  const query = createQueryRunner()
  type Handle = Pick<typeof drizzle, 'select' | 'execute' | 'delete' | 'insert'>
  const readHeads = (handle: Handle): Promise<PartHead[]> =>
    handle
      .select({
        part: branding.part,
        description: branding.description,
        sha256: branding.sha256,
      })
      .from(branding)
  const logoUrl = (sha256: string) => {
    const version = sha256.slice(0, versionChars)
    return `/v1/branding/logo?v=${version}&sig=${sealer.sign('logo', version)}`
  }
  const viewOf = (heads: readonly PartHead[]): ThemeView => ({
    ...themeOf(heads),
    logoUrl: logoUrl(logoHeadOf(heads).sha256),
  })

  /** Replaces the row of a part, or deletes it for null. Changes nothing and rethrows if `check` throws. */
  const replace = (
    part: Row['part'],
    row: Pick<Row, 'description' | 'sha256' | 'content'> | null,
    {
      principal,
      check,
    }: { principal: RequestPrincipal; check: (current: readonly PartHead[]) => void },
  ): Promise<PartHead[]> =>
    query(() =>
      drizzle.transaction(async (transaction) => {
        // A missing row cannot be locked.
        await transaction.execute(
          sql`select pg_advisory_xact_lock(hashtextextended('branding', 0))`,
        )
        const heads = await readHeads(transaction)
        check(heads)
        const at = now()
        await transaction.delete(branding).where(eq(branding.part, part))
        if (row !== null) {
          const changed = { ...row, part, updatedBy: principal.userId, updatedAt: at }
          await transaction.insert(branding).values(changed)
        }
        const changedHeads = await readHeads(transaction)
        const changes = changesOf(part, heads, changedHeads)
        if (changes !== null) {
          const action = `${part}.${row === null ? 'reset' : 'update'}`
          await recordChange(transaction, principal, {
            kind: 'branding',
            id: part,
            action,
            ...changes,
            at,
          })
        }
        return changedHeads
      }),
    )
  const replaceTheme = async (
    row: { description: string; sha256: string } | null,
    { principal, isExpected }: Change,
  ): Promise<ThemeView> => {
    const check = (heads: readonly PartHead[]) => {
      const current = viewOf(heads)
      if (isExpected(current.sha256)) return
      const etag = themeTag(current, 'json')
      throw new AppError('precondition_failed', 'The theme has changed.', { etag })
    }
    return viewOf(await replace('theme', row && { ...row, content: null }, { principal, check }))
  }
  const replaceLogo = (
    row: Pick<Row, 'description' | 'sha256' | 'content'> | null,
    { principal, isExpected }: Change,
  ) =>
    replace('logo', row, {
      principal,
      check: (heads) =>
        requireExpected(isExpected, logoHeadOf(heads).sha256, 'The logo has changed.'),
    })

  return {
    theme: async (): Promise<ThemeView> => viewOf(await query(() => readHeads(drizzle))),

    /** Throws `contrast_too_low` if contrast is enforced. */
    async setTheme(theme: Theme, change: Change): Promise<ThemeView> {
      if (settings.enforceContrast) requireContrast(theme)
      const description = JSON.stringify(theme)
      return replaceTheme({ description, sha256: hash(description) }, change)
    },

    resetTheme: (change: Change) => replaceTheme(null, change),

    async logo(): Promise<LogoImage & LogoHead> {
      const [row] = await query(() =>
        drizzle.select().from(branding).where(eq(branding.part, 'logo')),
      )
      if (row === undefined || row.content === null) return builtInLogo
      return { ...logoHeadOf([row]), content: row.content }
    },

    logoHead: async (): Promise<LogoHead> => logoHeadOf(await query(() => readHeads(drizzle))),

    async setLogo(image: LogoImage, change: Change) {
      const { content, ...metadata } = image
      const sha256 = hash(content)
      await replaceLogo({ description: JSON.stringify(metadata), content, sha256 }, change)
      return { ...image, sha256, url: logoUrl(sha256) }
    },

    async removeLogo(change: Change): Promise<void> {
      await replaceLogo(null, change)
    },

    hasSigned: ({ version, signature }: LogoLink): boolean =>
      sealer.hasSigned('logo', version, signature),
  }
}

/** Whether the link is for the logo with this hash. */
export function isLinkTo(sha256: string, { version }: LogoLink): boolean {
  return version === sha256.slice(0, versionChars)
}

const suffixChars = 12

/**
 * Formats have entity tags of their own, in a suffix after a dash; the JSON, which has the logo's link,
 * also depends on the logo. `If-Match` ignores the suffix.
 */
export function themeTag({ sha256, logoUrl }: ThemeView, format: string): string {
  return `${sha256}-${format === 'json' ? hash(logoUrl).slice(0, suffixChars) : format}`
}

/** Fields that an older release did not store have their default. */
function themeOf(heads: readonly PartHead[]): Pick<ThemeView, 'theme' | 'sha256'> {
  const head = heads.find(({ part }) => part === 'theme')
  if (head === undefined) return { theme: defaultTheme, sha256: hash(JSON.stringify(defaultTheme)) }
  const stored: Partial<Theme> = JSON.parse(head.description)
  return { theme: { ...defaultTheme, ...stored }, sha256: head.sha256 }
}

const builtInLogo = { ...defaultLogo, sha256: hash(defaultLogo.content) }

function logoHeadOf(heads: readonly PartHead[]): LogoHead {
  const head = heads.find(({ part }) => part === 'logo')
  if (head === undefined) return builtInLogo
  const metadata: Omit<LogoImage, 'content'> = JSON.parse(head.description)
  return { ...metadata, sha256: head.sha256 }
}

/** The changed fields of a part, before and after; null: none. */
function changesOf(part: Row['part'], before: readonly PartHead[], after: readonly PartHead[]) {
  const fieldsOf = (heads: readonly PartHead[]): JsonObject =>
    part === 'theme' ? { ...themeOf(heads).theme } : auditedLogo(logoHeadOf(heads))
  return changedFields(fieldsOf(before), fieldsOf(after))
}

function auditedLogo({ sha256, contentType }: LogoHead): JsonObject {
  return { sha256, content_type: contentType }
}

function requireContrast(theme: Theme): void {
  const failing = contrastOf(theme).find(({ passes }) => !passes)
  if (failing === undefined) return
  throw refused(contrastParam(failing), contrastMessage(failing), 'contrast_too_low')
}

function hash(content: string | Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(content).digest('hex')
}
