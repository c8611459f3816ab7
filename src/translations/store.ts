import { eq, sql } from 'drizzle-orm'
import type { Config } from '#config/schema.ts'
import { recordChange } from '#db/audit-entries.ts'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { translation } from '#db/schema/portal.ts'
import { type IsExpected, requireExpected } from '#lib/entity-tag.ts'
import type { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import { type Catalogue, comparePlaceholders, openCatalogue } from './catalogue.ts'
import type { CatalogueTexts } from './config.ts'
import { parseLanguage, type TextsPatch, type TranslationStatus } from './schema.ts'
import { checkStatus } from './status.ts'
import { changedTexts, countTexts, mergeTexts, parseTexts, serializeTexts } from './texts.ts'

export type LanguageRow = typeof translation.$inferSelect

/** A language without its texts, with their size. */
type LanguageHead = Pick<LanguageRow, 'language' | 'sha256'> & { readonly bytes: number }

/** Texts as JSON (language → namespace → key → text) with their entity tag. */
export type Overrides = { readonly json: string; readonly tag: string }

type ChangeOptions = {
  readonly principal: RequestPrincipal
  /** The `If-Match` condition: the tag of the language, or of all languages. */
  readonly isExpected: IsExpected
}

type PatchOptions = ChangeOptions & {
  /** Accepts texts with other placeholders or tags. */
  readonly isForced: boolean
}

const textsPerLanguageMax = 10_000
const languagesMax = 200
/** In total, since one response may return everything. */
const totalBytesMax = 16 * 1024 * 1024

export type Translations = ReturnType<typeof createTranslations>

/**
 * Overrides of the portal's own texts. Nothing is cached, so a change is visible on all replicas at
 * once. Languages are canonical BCP 47 tags; null means all languages.
 */
export function createTranslations(
  { drizzle }: Database,
  { settings, now }: { settings: Config['translations']; now: () => Date },
) {
  const query = createQueryRunner()
  const supported = new Set(settings.languages.map(parseLanguage))
  const catalogue = settings.catalogue === undefined ? null : openCatalogue(settings.catalogue)
  const isSupported = (language: string) => supported.size === 0 || supported.has(language)
  type Handle = Pick<typeof drizzle, 'select' | 'insert' | 'delete'>

  const readHeads = (handle: Handle): Promise<LanguageHead[]> =>
    handle
      .select({
        language: translation.language,
        sha256: translation.sha256,
        bytes: sql<number>`octet_length(${translation.texts})`.mapWith(Number),
      })
      .from(translation)
  const readRows = (handle: Handle, language: string | null): Promise<LanguageRow[]> =>
    handle.select().from(translation).where(isLanguage(language))

  /** Serialises changes, since the limits apply to the whole table. Changes nothing if `work` throws. */
  const change = <T>(
    language: string | null,
    isExpected: IsExpected,
    work: (transaction: Handle, heads: readonly LanguageHead[]) => Promise<T>,
  ): Promise<T> =>
    query(() =>
      drizzle.transaction(async (transaction) => {
        await transaction.execute(
          sql`select pg_advisory_xact_lock(hashtextextended('translations', 0))`,
        )
        const heads = await readHeads(transaction)
        // A client that has read all languages may also send their common tag to change one.
        if (!isExpected(tagOf(heads, null))) {
          requireExpected(isExpected, tagOf(heads, language), 'The translations have changed.')
        }
        return work(transaction, heads)
      }),
    )

  return {
    read: async (language: string | null): Promise<Overrides> =>
      overridesOf(await query(() => readRows(drizzle, language)), language),

    tagOf: async (language: string | null): Promise<string> =>
      tagOf(await query(() => readHeads(drizzle)), language),

    /** The portal's own texts; none if they are not configured. */
    originals: (language: string | null): CatalogueTexts => catalogue?.texts(language) ?? {},

    /** Throws an `AppError` of status 412 or 422. */
    async patch(
      language: string,
      patch: TextsPatch,
      { principal, isExpected, isForced }: PatchOptions,
    ): Promise<Overrides> {
      if (!isSupported(language)) throw notSupported(language, supported)
      if (!isForced && catalogue !== null) validatePlaceholders(language, patch, catalogue)
      return change(language, isExpected, async (transaction, heads) => {
        const [row] = await readRows(transaction, language)
        const stored = parseTexts(row?.texts ?? '{}')
        const texts = mergeTexts(stored, patch)
        const at = now()
        const changes = changedTexts(stored, texts)
        if (changes !== null) {
          const entry = { kind: 'translation', id: language, action: 'update', ...changes } as const
          await recordChange(transaction, principal, { ...entry, at })
        }
        await transaction.delete(translation).where(isLanguage(language))
        const count = countTexts(texts)
        if (count === 0) return overridesOf([], language)
        const json = serializeTexts(texts)
        const others = heads.filter((head) => head.language !== language)
        requireWithinLimits(count, Buffer.byteLength(json), others)
        const sha256 = hash(json)
        const changed = {
          language,
          texts: json,
          sha256,
          updatedBy: principal.userId,
          updatedAt: at,
        }
        await transaction.insert(translation).values(changed)
        return overridesOf([changed], language)
      })
    },

    /** Throws `precondition_failed`. */
    reset: (language: string | null, { principal, isExpected }: ChangeOptions): Promise<void> =>
      change(language, isExpected, async (transaction) => {
        const removed = await transaction
          .delete(translation)
          .where(isLanguage(language))
          .returning({ language: translation.language, sha256: translation.sha256 })
        if (removed.length === 0) return
        await recordChange(transaction, principal, {
          kind: 'translation',
          id: language ?? '*',
          action: 'reset',
          before: Object.fromEntries(removed.map((row) => [row.language, { sha256: row.sha256 }])),
          at: now(),
        })
      }),

    status: async (): Promise<TranslationStatus> =>
      checkStatus(await query(() => readRows(drizzle, null)), { catalogue, isSupported }),
  }
}

function isLanguage(language: string | null) {
  return language === null ? undefined : eq(translation.language, language)
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
    return languages.find((head) => head.language === language)?.sha256 ?? hash('')
  }
  const lines = languages.map((head) => `${head.language} ${head.sha256}\n`)
  return hash(lines.toSorted().join(''))
}

function requireWithinLimits(count: number, bytes: number, others: readonly LanguageHead[]): void {
  if (count > textsPerLanguageMax) {
    throw refused('', `A language may have at most ${textsPerLanguageMax} texts.`, 'too_many_keys')
  }
  if (others.length >= languagesMax) {
    const sentence = `The limit of ${languagesMax} languages is reached.`
    throw refused('language', sentence, 'too_many_languages')
  }
  if (others.reduce((sum, head) => sum + head.bytes, bytes) > totalBytesMax) {
    throw refused('', `All translations may have at most ${totalBytesMax} bytes.`, 'too_much_text')
  }
}

function validatePlaceholders(language: string, patch: TextsPatch, catalogue: Catalogue): void {
  for (const [namespace, keys] of patch) {
    for (const [key, text] of keys ?? []) {
      const original = catalogue.find(language, namespace, key)
      if (text === null || original === undefined) continue
      const difference = comparePlaceholders(original, text)
      if (difference === null) continue
      const { missing, unexpected } = difference
      const problems = [
        ...(missing.length === 0 ? [] : [`lacks ${missing.join(' ')}`]),
        ...(unexpected.length === 0 ? [] : [`must not have ${unexpected.join(' ')}`]),
      ]
      const param = `${namespace}.${key}`
      const sentence = `"${param}" ${problems.join(' and ')}; use ?force=true to store it anyway.`
      throw refused(param, sentence, 'placeholder_mismatch')
    }
  }
}

function notSupported(language: string, supported: ReadonlySet<string>): AppError {
  const sentence = `"${language}" is not among the languages of this portal: ${[...supported].join(', ')}.`
  return refused('language', sentence, 'language_not_supported')
}

function hash(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}
