import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { refused } from '#lib/unprocessable.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { contrastOf } from './colors.ts'
import { defaultLogo, type LogoImage } from './logo/image.ts'
import { contrastMessage, contrastParam } from './record.ts'
import { type BrandingDatabase, createBrandingStore, type PartHead } from './store.ts'
import { defaultTheme, type Theme } from './theme.ts'

export type ThemeView = {
  readonly theme: Theme
  /** The entity tag of the theme, without the logo. */
  readonly tag: string
  /** A signed path: it needs no credential. */
  readonly logoUrl: string
}

type Logo = LogoImage & { readonly sha256: string }
export type LogoHead = Omit<Logo, 'content'>

type Change = {
  readonly userId: string
  /** The `If-Match` condition. */
  isExpected(tag: string): boolean
}

/**
 * The theme and logo of the portal. Nothing is cached, so a change is visible on all replicas at once.
 * Changes throw `precondition_failed` if their `If-Match` condition does not hold.
 */
export type Branding = {
  theme(): Promise<ThemeView>
  /** Throws `contrast_too_low` if contrast is enforced. */
  setTheme(theme: Theme, change: Change): Promise<ThemeView>
  resetTheme(change: Change): Promise<ThemeView>
  logo(): Promise<Logo>
  logoHead(): Promise<LogoHead>
  setLogo(image: LogoImage, change: Change): Promise<Logo & { readonly url: string }>
  removeLogo(change: Change): Promise<void>
  hasSigned(link: LogoLink): boolean
}

/** The parameters of a signed logo link: a prefix of the logo's hash, and its signature. */
export type LogoLink = { readonly version: string; readonly signature: string }

const versionChars = 12

export function createBranding(
  database: BrandingDatabase,
  {
    settings,
    sealer,
    now,
  }: {
    settings: Config['branding']
    sealer: Pick<Sealer, 'sign' | 'hasSigned'>
    now: () => Date
  },
): Branding {
  const store = createBrandingStore(database)
  const logoUrl = (sha256: string) => {
    const version = sha256.slice(0, versionChars)
    return `/v1/branding/logo?v=${version}&sig=${sealer.sign('logo', version)}`
  }
  const viewOf = (heads: readonly PartHead[]): ThemeView => ({
    ...themeOf(heads),
    logoUrl: logoUrl(logoHeadOf(heads).sha256),
  })
  const replaceTheme = async (
    row: { description: string; sha256: string } | null,
    change: Change,
  ) =>
    viewOf(
      await store.replace(
        'theme',
        row && { part: 'theme', content: null, updatedBy: change.userId, updatedAt: now(), ...row },
        (heads) => requireExpected(change, themeOf(heads).tag, 'The theme has changed.'),
      ),
    )
  const requireExpectedLogo = (change: Change) => (heads: readonly PartHead[]) =>
    requireExpected(change, logoHeadOf(heads).sha256, 'The logo has changed.')
  return {
    theme: async () => viewOf(await store.heads()),
    async setTheme(theme, change) {
      if (settings.enforceContrast) requireContrast(theme)
      const description = JSON.stringify(theme)
      return await replaceTheme({ description, sha256: hash(description) }, change)
    },
    resetTheme: (change) => replaceTheme(null, change),

    async logo() {
      const row = await store.find('logo')
      if (row === undefined || row.content === null) return builtInLogo
      return { ...logoHeadOf([row]), content: row.content }
    },
    logoHead: async () => logoHeadOf(await store.heads()),
    async setLogo(image, change) {
      const { content, ...metadata } = image
      const sha256 = hash(content)
      const row = {
        part: 'logo' as const,
        description: JSON.stringify(metadata),
        content,
        sha256,
        updatedBy: change.userId,
        updatedAt: now(),
      }
      await store.replace('logo', row, requireExpectedLogo(change))
      return { ...image, sha256, url: logoUrl(sha256) }
    },
    async removeLogo(change) {
      await store.replace('logo', null, requireExpectedLogo(change))
    },
    hasSigned: ({ version, signature }) => sealer.hasSigned('logo', version, signature),
  }
}

/** Whether the link is for the logo with this hash. */
export function isLinkTo(sha256: string, { version }: LogoLink): boolean {
  return version === sha256.slice(0, versionChars)
}

/** Fields that an older release did not store have their default. */
function themeOf(heads: readonly PartHead[]): Pick<ThemeView, 'theme' | 'tag'> {
  const head = heads.find(({ part }) => part === 'theme')
  if (head === undefined) return { theme: defaultTheme, tag: hash(JSON.stringify(defaultTheme)) }
  const stored: Partial<Theme> = JSON.parse(head.description)
  return { theme: { ...defaultTheme, ...stored }, tag: head.sha256 }
}

const builtInLogo: Logo = { ...defaultLogo, sha256: hash(defaultLogo.content) }

function logoHeadOf(heads: readonly PartHead[]): LogoHead {
  const head = heads.find(({ part }) => part === 'logo')
  if (head === undefined) return builtInLogo
  const metadata: Omit<LogoImage, 'content'> = JSON.parse(head.description)
  return { ...metadata, sha256: head.sha256 }
}

function requireExpected({ isExpected }: Change, tag: string, sentence: string): void {
  if (!isExpected(tag)) throw new AppError('precondition_failed', sentence)
}

function requireContrast(theme: Theme): void {
  const failing = contrastOf(theme).find(({ passes }) => !passes)
  if (failing === undefined) return
  throw refused(contrastParam(failing), contrastMessage(failing), 'contrast_too_low')
}

function hash(content: string | Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(content).digest('hex')
}
