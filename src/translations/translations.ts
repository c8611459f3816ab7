import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { refused } from '#lib/unprocessable.ts'
import {
  type Catalogue,
  comparePlaceholders,
  openCatalogue,
  type PlaceholderDifference,
} from './catalogue.ts'
import { parseLanguage, type TextsPatch, type TranslationStatus } from './schema.ts'
import { checkStatus } from './status.ts'
import {
  createTranslationStore,
  type LanguageHead,
  type LanguageRow,
  type StoredTexts,
  type TranslationDatabase,
} from './store.ts'
import { countTexts, mergeTexts, parseTexts, serializeTexts, type Texts } from './texts.ts'

/** Texts as JSON (language → namespace → key → text) with their entity tag. */
export type Overrides = { readonly json: string; readonly tag: string }

/**
 * Overrides of the portal's own texts. Nothing is cached, so a change is visible on all replicas at
 * once. Languages are canonical BCP 47 tags; null means all languages.
 */
export type Translations = {
  read(language: string | null): Promise<Overrides>
  tagOf(language: string | null): Promise<string>
  /** Throws an `AppError` of status 412 or 422. */
  patch(language: string, patch: TextsPatch, options: PatchOptions): Promise<Overrides>
  /** Throws `precondition_failed`. */
  reset(language: string | null, isExpected: (tag: string) => boolean): Promise<void>
  status(): Promise<TranslationStatus>
}

type PatchOptions = {
  readonly userId: string
  /** The `If-Match` condition: the tag of the language, or of all languages. */
  isExpected(tag: string): boolean
  /** Accepts texts with other placeholders or tags. */
  readonly isForced: boolean
}

const textsPerLanguageMax = 10_000
const languagesMax = 200
/** In total, since one response may return everything. */
const totalBytesMax = 16 * 1024 * 1024

export function createTranslations(
  database: TranslationDatabase,
  { settings, now }: { settings: Config['translations']; now: () => Date },
): Translations {
  const store = createTranslationStore(database)
  const supported = new Set(settings.languages.map(parseLanguage))
  const catalogue = settings.catalogue === undefined ? null : openCatalogue(settings.catalogue)
  const isSupported = (language: string) => supported.size === 0 || supported.has(language)
  return {
    read: async (language) => overridesOf(await store.rows(language), language),
    tagOf: async (language) => tagOf(await store.heads(), language),

    async patch(language, patch, { userId, isExpected, isForced }) {
      if (!isSupported(language)) throw notSupported(language, supported)
      if (!isForced && catalogue !== null) validatePlaceholders(language, patch, catalogue)
      const row = await store.replace(language, (stored) => {
        requireExpected(stored.heads, language, isExpected)
        const texts = mergeTexts(parseTexts(stored.texts ?? '{}'), patch)
        return rowOf(language, texts, { stored, userId, updatedAt: now() })
      })
      return overridesOf(row === null ? [] : [row], language)
    },

    reset: (language, isExpected) =>
      store.remove(language, (heads) => requireExpected(heads, language, isExpected)),

    status: async () => checkStatus(await store.rows(null), { catalogue, isSupported }),
  }
}

function overridesOf(rows: readonly LanguageRow[], language: string | null): Overrides {
  const parts = rows
    .toSorted((one, other) => (one.language < other.language ? -1 : 1))
    .map((row) => `${JSON.stringify(row.language)}:${row.texts}`)
  return { json: `{${parts.join(',')}}`, tag: tagOf(rows, language) }
}

function tagOf(
  languages: readonly Pick<LanguageHead, 'language' | 'sha256'>[],
  language: string | null,
): string {
  if (language !== null) {
    return languages.find((head) => head.language === language)?.sha256 ?? sha256('')
  }
  const lines = languages.map((head) => `${head.language} ${head.sha256}\n`)
  return sha256(lines.toSorted().join(''))
}

/** A client that has read all languages may also send their common tag to change one. */
function requireExpected(
  heads: readonly LanguageHead[],
  language: string | null,
  isExpected: (tag: string) => boolean,
): void {
  if (isExpected(tagOf(heads, language)) || isExpected(tagOf(heads, null))) return
  throw new AppError('precondition_failed', 'The translations have changed.')
}

function rowOf(
  language: string,
  texts: Texts,
  { stored, userId, updatedAt }: { stored: StoredTexts; userId: string; updatedAt: Date },
): LanguageRow | null {
  const count = countTexts(texts)
  if (count === 0) return null
  if (count > textsPerLanguageMax) {
    throw refused('', `A language may have at most ${textsPerLanguageMax} texts.`, 'too_many_keys')
  }
  const others = stored.heads.filter((head) => head.language !== language)
  if (others.length >= languagesMax) {
    throw refused(
      'language',
      `The limit of ${languagesMax} languages is reached.`,
      'too_many_languages',
    )
  }
  const json = serializeTexts(texts)
  const bytes = others.reduce((sum, head) => sum + head.bytes, Buffer.byteLength(json))
  if (bytes > totalBytesMax) {
    throw refused('', `All translations may have at most ${totalBytesMax} bytes.`, 'too_much_text')
  }
  return { language, texts: json, sha256: sha256(json), updatedBy: userId, updatedAt }
}

function validatePlaceholders(language: string, patch: TextsPatch, catalogue: Catalogue): void {
  for (const [namespace, keys] of patch) {
    for (const [key, text] of keys ?? []) {
      const original = catalogue.find(language, namespace, key)
      if (text === null || original === undefined) continue
      const difference = comparePlaceholders(original, text)
      if (difference !== null) throw mismatch(`${namespace}.${key}`, difference)
    }
  }
}

function mismatch(param: string, { missing, unexpected }: PlaceholderDifference): AppError {
  const problems = [
    missing.length === 0 ? '' : `lacks ${missing.join(' ')}`,
    unexpected.length === 0 ? '' : `must not have ${unexpected.join(' ')}`,
  ]
  const sentence = `"${param}" ${problems.filter((problem) => problem !== '').join(' and ')}; use ?force=true to store it anyway.`
  return refused(param, sentence, 'placeholder_mismatch')
}

function notSupported(language: string, supported: ReadonlySet<string>): AppError {
  const sentence = `"${language}" is not among the languages of this portal: ${[...supported].join(', ')}.`
  return refused('language', sentence, 'language_not_supported')
}

function sha256(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}
