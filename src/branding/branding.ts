import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { refused } from '#lib/unprocessable.ts'
import type { Sealer } from '#sealing/sealer.ts'
import { contrastOf, type PairContrast } from './colors/contrast.ts'
import { defaultLogo } from './logo/default-logo.ts'
import type { LogoImage } from './logo/image.ts'
import { type BrandingDatabase, createBrandingStore, type PartHead } from './store.ts'
import { defaultTheme, type Theme } from './theme.ts'

export type ThemeView = {
  readonly theme: Theme
  /** The name of the tag of the theme alone. */
  readonly tag: string
  /** The path of the logo, with a signature: whoever has it needs no credential. */
  readonly logoUrl: string
}

type Logo = LogoImage & { readonly sha256: string }
export type LogoHead = Omit<Logo, 'content'>

type Change = {
  /** The id of the user who does it. */
  readonly by: string
  /** Whether it is meant for what has this tag. */
  isExpected(tag: string): boolean
}

/**
 * How the portal looks. Nothing is kept in memory: what one replica changed, all of them tell. Changes
 * throw an `AppError` of status 412 where they were meant for something else.
 */
export type Branding = {
  theme(): Promise<ThemeView>
  /** Throws `contrast_too_low` where that is not allowed. */
  setTheme(theme: Theme, change: Change): Promise<ThemeView>
  resetTheme(change: Change): Promise<ThemeView>
  logo(): Promise<Logo>
  /** The same without its bytes. */
  logoHead(): Promise<LogoHead>
  setLogo(image: LogoImage, change: Change): Promise<Logo & { readonly url: string }>
  removeLogo(change: Change): Promise<void>
  /** Whether we have made this link. */
  hasSigned(link: LogoLink): boolean
}

/** The parameters of a link: the beginning of the hash of the logo, and our signature of that. */
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
  const urlOf = (sha256: string) => {
    const version = sha256.slice(0, versionChars)
    return `/v1/branding/logo?v=${version}&sig=${sealer.sign('logo', version)}`
  }
  const viewOf = (heads: readonly PartHead[]): ThemeView => ({
    ...themeOf(heads),
    logoUrl: urlOf(logoHeadOf(heads).sha256),
  })
  const written = ({ by }: Change) => ({ updatedBy: by, updatedAt: now() })
  const demandTheme = (change: Change) => (heads: readonly PartHead[]) =>
    demand(change, themeOf(heads).tag, 'The theme has changed since.')
  const demandLogo = (change: Change) => (heads: readonly PartHead[]) =>
    demand(change, logoHeadOf(heads).sha256, 'The logo has changed since.')
  return {
    theme: async () => viewOf(await store.heads()),
    async setTheme(theme, change) {
      if (settings.enforceContrast) demandContrast(contrastOf(theme))
      const description = JSON.stringify(theme)
      const sha256 = hash(description)
      const row = { part: 'theme' as const, description, content: null, sha256, ...written(change) }
      return viewOf(await store.replace('theme', row, demandTheme(change)))
    },
    resetTheme: async (change) => viewOf(await store.replace('theme', null, demandTheme(change))),

    async logo() {
      const row = await store.find('logo')
      if (row === undefined || row.content === null) return builtInLogo
      return { ...logoHeadOf([row]), content: row.content }
    },
    logoHead: async () => logoHeadOf(await store.heads()),
    async setLogo(image, change) {
      const { content, ...told } = image
      const sha256 = hash(content)
      const description = JSON.stringify(told)
      const row = { part: 'logo' as const, description, content, sha256, ...written(change) }
      await store.replace('logo', row, demandLogo(change))
      return { ...image, sha256, url: urlOf(sha256) }
    },
    async removeLogo(change) {
      await store.replace('logo', null, demandLogo(change))
    },
    hasSigned: ({ version, signature }) => sealer.hasSigned('logo', version, signature),
  }
}

/** Whether a link was made for the logo with this hash. */
export function isLinkTo(sha256: string, { version }: LogoLink): boolean {
  return version === sha256.slice(0, versionChars)
}

/** A field that a stored theme does not know yet is the one of the default theme. */
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
  const told: Omit<LogoImage, 'content'> = JSON.parse(head.description)
  return { ...told, sha256: head.sha256 }
}

function demand({ isExpected }: Change, tag: string, sentence: string): void {
  if (!isExpected(tag)) throw new AppError('precondition_failed', sentence)
}

function demandContrast(pairs: readonly PairContrast[]): void {
  const failing = pairs.find(({ passes }) => !passes)
  if (failing === undefined) return
  throw refused(pathOf(failing), describe(failing), 'contrast_too_low')
}

/** The field of the colour that lies on the other one. */
export function pathOf({ scheme, foreground }: PairContrast): string {
  return `colors.${scheme}.${foreground}`
}

export function describe({ scheme, ...pair }: PairContrast): string {
  const { foreground, background, ratio, required, suggestion } = pair
  const cure = suggestion === null ? '' : ` ${suggestion} would do.`
  return `In the ${scheme} scheme "${foreground}" on "${background}" has a contrast of ${ratio}, and ${required} are needed.${cure}`
}

function hash(content: string | Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(content).digest('hex')
}
