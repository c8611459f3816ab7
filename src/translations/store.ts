import { eq, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { translation } from '#db/schema/portal.ts'

export type TranslationDatabase = Pick<Database, 'drizzle'>

export type LanguageRow = typeof translation.$inferSelect

/** A language without its texts. */
export type LanguageHead = Pick<LanguageRow, 'language' | 'sha256'> & {
  /** Of its texts as they are stored. */
  readonly bytes: number
}

/** What is stored while a change has the table for itself. */
export type Known = {
  readonly heads: readonly LanguageHead[]
  /** The texts of the language that is changed. */
  readonly texts: string | undefined
}

/** The table of texts. Changes come one after the other, because its limits are those of all of it. */
export function createTranslationStore({ drizzle }: TranslationDatabase) {
  const ask = createQueryRunner()
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
    heads: (): Promise<LanguageHead[]> => ask(() => readHeads(drizzle)),

    /** Of one language, or of all of them. */
    rows: (language: string | null): Promise<LanguageRow[]> =>
      ask(() =>
        drizzle
          .select()
          .from(translation)
          .where(language === null ? undefined : eq(translation.language, language)),
      ),

    /** Stores what `change` makes of a language, or nothing where that is null. */
    replace: (
      language: string,
      change: (known: Known) => LanguageRow | null,
    ): Promise<LanguageRow | null> =>
      ask(() =>
        drizzle.transaction(async (transaction) => {
          await lock(transaction)
          const isIt = eq(translation.language, language)
          const [row] = await transaction.select().from(translation).where(isIt)
          const changed = change({ heads: await readHeads(transaction), texts: row?.texts })
          await transaction.delete(translation).where(isIt)
          if (changed !== null) await transaction.insert(translation).values(changed)
          return changed
        }),
      ),

    /** Removes one language, or all of them; what `check` throws is thrown, and nothing is removed. */
    remove: (
      language: string | null,
      check: (heads: readonly LanguageHead[]) => void,
    ): Promise<void> =>
      ask(() =>
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
