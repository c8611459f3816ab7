import type { Config } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { refused } from '#lib/unprocessable.ts'
import { openCatalogue, type PortalTexts } from './catalogue.ts'
import { readLanguage } from './language.ts'
import { compareMarks, type Difference } from './placeholders.ts'
import type { TextsPatch } from './schema.ts'
import { describeStatus, type TranslationStatus } from './status.ts'
import {
  createTranslationStore,
  type Known,
  type LanguageHead,
  type LanguageRow,
  type TranslationDatabase,
} from './store.ts'
import { countTexts, mergeTexts, parseTexts, spellTexts, type Texts } from './texts.ts'

/** Texts as JSON, language → namespace → key → text, and the name of their entity tag. */
export type Overrides = { readonly json: string; readonly tag: string }

/**
 * The texts of the portal that stand in place of its own. Nothing is kept in memory: what one replica
 * changed, all of them tell. Languages are canonical tags.
 */
export type Translations = {
  /** Of one language, or of all of them. */
  read(language: string | null): Promise<Overrides>
  tagOf(language: string | null): Promise<string>
  /** Throws an `AppError` of status 412 or 422, and nothing is changed. */
  patch(language: string, patch: TextsPatch, how: PatchOptions): Promise<Overrides>
  /** Throws an `AppError` of status 412, and nothing is forgotten. */
  reset(language: string | null, isExpected: (tag: string) => boolean): Promise<void>
  status(): Promise<TranslationStatus>
}

type PatchOptions = {
  /** The id of the user who does it. */
  readonly by: string
  /** Whether it is meant for what has this tag: of the language, or of all of them. */
  isExpected(tag: string): boolean
  /** Also where placeholders or tags differ. */
  readonly isForced: boolean
}

const textsPerLanguageMax = 10_000
const languagesMax = 200
/** Of everything that is stored, because all of it is one answer. */
const bytesMax = 16 * 1024 * 1024

export function createTranslations(
  database: TranslationDatabase,
  { settings, now }: { settings: Config['translations']; now: () => Date },
): Translations {
  const store = createTranslationStore(database)
  const supported = new Set(settings.languages.map(readLanguage))
  const catalogue = settings.catalogue === undefined ? null : openCatalogue(settings.catalogue)
  const isSupported = (language: string) => supported.size === 0 || supported.has(language)
  return {
    read: async (language) => overridesOf(await store.rows(language), language),
    tagOf: async (language) => tagOf(await store.heads(), language),

    async patch(language, patch, { by, isExpected, isForced }) {
      if (!isSupported(language)) throw notSupported(language, supported)
      if (!isForced && catalogue !== null) checkMarks(language, patch, catalogue)
      const row = await store.replace(language, (known) => {
        demandExpected(known.heads, language, isExpected)
        const texts = mergeTexts(parseTexts(known.texts ?? '{}'), patch)
        return rowOf(language, texts, { known, by, at: now() })
      })
      return overridesOf(row === null ? [] : [row], language)
    },

    reset: (language, isExpected) =>
      store.remove(language, (heads) => demandExpected(heads, language, isExpected)),

    status: async () => describeStatus(await store.rows(null), { catalogue, isSupported }),
  }
}

function overridesOf(rows: readonly LanguageRow[], language: string | null): Overrides {
  const parts = rows
    .toSorted((one, other) => (one.language < other.language ? -1 : 1))
    .map((row) => `${JSON.stringify(row.language)}:${row.texts}`)
  return { json: `{${parts.join(',')}}`, tag: tagOf(rows, language) }
}

type Hashed = Pick<LanguageHead, 'language' | 'sha256'>

function tagOf(languages: readonly Hashed[], language: string | null): string {
  if (language !== null) {
    return languages.find((known) => known.language === language)?.sha256 ?? sha256('')
  }
  const lines = languages.map((known) => `${known.language} ${known.sha256}\n`)
  return sha256(lines.toSorted().join(''))
}

/** Who has read all languages may change one of them by that tag as well. */
function demandExpected(
  heads: readonly LanguageHead[],
  language: string | null,
  isExpected: (tag: string) => boolean,
): void {
  if (isExpected(tagOf(heads, language)) || isExpected(tagOf(heads, null))) return
  throw new AppError('precondition_failed', 'The translations have changed since.')
}

function rowOf(
  language: string,
  texts: Texts,
  { known, by, at }: { known: Known; by: string; at: Date },
): LanguageRow | null {
  const count = countTexts(texts)
  if (count === 0) return null
  if (count > textsPerLanguageMax) {
    throw refused('', `A language has at most ${textsPerLanguageMax} texts.`, 'too_many_keys')
  }
  const others = known.heads.filter((head) => head.language !== language)
  if (others.length >= languagesMax) {
    throw refused('language', `There are ${languagesMax} languages already.`, 'too_many_languages')
  }
  const json = spellTexts(texts)
  const bytes = others.reduce((sum, head) => sum + head.bytes, Buffer.byteLength(json))
  if (bytes > bytesMax) {
    throw refused('', `All translations have at most ${bytesMax} bytes.`, 'too_much_text')
  }
  return { language, texts: json, sha256: sha256(json), updatedBy: by, updatedAt: at }
}

function checkMarks(language: string, patch: TextsPatch, catalogue: PortalTexts): void {
  for (const [namespace, keys] of patch) {
    for (const [key, text] of keys ?? []) {
      const own = catalogue.find(language, namespace, key)
      if (text === null || own === undefined) continue
      const difference = compareMarks(own, text)
      if (difference !== null) throw mismatch(`${namespace}.${key}`, difference)
    }
  }
}

function mismatch(param: string, { missing, unexpected }: Difference): AppError {
  const faults = [
    missing.length === 0 ? '' : `lacks ${missing.join(' ')}`,
    unexpected.length === 0 ? '' : `has ${unexpected.join(' ')} too many`,
  ]
  const sentence = `"${param}" ${faults.filter((fault) => fault !== '').join(' and ')}; with ?force=true it is taken all the same.`
  return refused(param, sentence, 'placeholder_mismatch')
}

function notSupported(language: string, supported: ReadonlySet<string>): AppError {
  const sentence = `"${language}" is not among the languages of this portal: ${[...supported].join(', ')}.`
  return refused('language', sentence, 'language_not_supported')
}

function sha256(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}
