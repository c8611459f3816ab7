import { eq, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { translation } from '#db/schema/portal.ts'

export type TranslationDatabase = Pick<Database, 'drizzle'>

export type LanguageRow = typeof translation.$inferSelect

/** A language without its texts. */
export type LanguageHead = Pick<LanguageRow, 'language' | 'sha256'> & {
  /** The size of its stored texts. */
  readonly bytes: number
}

/** The stored state, read under the lock. */
export type StoredTexts = {
  readonly heads: readonly LanguageHead[]
  /** The texts of the language to change. */
  readonly texts: string | undefined
}

/** Changes are serialised by a lock, since the limits apply to the whole table. */
export function createTranslationStore({ drizzle }: TranslationDatabase) {
  const query = createQueryRunner()
  type Handle = Pick<typeof drizzle, 'select' | 'execute'>
  const readHeads = (handle: Handle): Promise<LanguageHead[]> =>
    handle
      .select({
        language: translation.language,
        sha256: translation.sha256,
        bytes: sql<number>`octet_length(${translation.texts})`.mapWith(Number),
      })
      .from(translation)
  const lock = (handle: Handle) =>
    handle.execute(sql`select pg_advisory_xact_lock(hashtextextended('translations', 0))`)
  return {
    heads: (): Promise<LanguageHead[]> => query(() => readHeads(drizzle)),

    /** Null: all languages. */
    rows: (language: string | null): Promise<LanguageRow[]> =>
      query(() =>
        drizzle
          .select()
          .from(translation)
          .where(language === null ? undefined : eq(translation.language, language)),
      ),

    /** Replaces the row of a language with the result of `change`; null deletes it. */
    replace: (
      language: string,
      change: (stored: StoredTexts) => LanguageRow | null,
    ): Promise<LanguageRow | null> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          await lock(transaction)
          const isLanguage = eq(translation.language, language)
          const [row] = await transaction.select().from(translation).where(isLanguage)
          const changed = change({ heads: await readHeads(transaction), texts: row?.texts })
          await transaction.delete(translation).where(isLanguage)
          if (changed !== null) await transaction.insert(translation).values(changed)
          return changed
        }),
      ),

    /** Removes one language, or all for null. Removes nothing and rethrows if `check` throws. */
    remove: (
      language: string | null,
      check: (heads: readonly LanguageHead[]) => void,
    ): Promise<void> =>
      query(() =>
        drizzle.transaction(async (transaction) => {
          await lock(transaction)
          check(await readHeads(transaction))
          await transaction
            .delete(translation)
            .where(language === null ? undefined : eq(translation.language, language))
        }),
      ),
  }
}
