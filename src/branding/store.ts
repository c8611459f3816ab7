import { eq, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { branding } from '#db/schema/portal.ts'

export type BrandingDatabase = Pick<Database, 'drizzle'>

type Row = typeof branding.$inferSelect
export type Part = Row['part']
/** What is told of a part, without its bytes. */
export type PartHead = Pick<Row, 'part' | 'description' | 'sha256'>

/** The table of branding: at most one row for each part. */
export function createBrandingStore({ drizzle }: BrandingDatabase) {
  const ask = createQueryRunner()
  type Handle = Pick<typeof drizzle, 'select' | 'execute' | 'delete' | 'insert'>
  const readHeads = (handle: Handle): Promise<PartHead[]> =>
    handle
      .select({
        part: branding.part,
        description: branding.description,
        sha256: branding.sha256,
      })
      .from(branding)
  /** A row that is not there cannot be locked. */
  const alone = <T>(work: (handle: Handle) => Promise<T>): Promise<T> =>
    ask(() =>
      drizzle.transaction(async (transaction) => {
        await transaction.execute(
          sql`select pg_advisory_xact_lock(hashtextextended('branding', 0))`,
        )
        return await work(transaction)
      }),
    )
  return {
    heads: (): Promise<PartHead[]> => ask(() => readHeads(drizzle)),

    find: (part: Part): Promise<Row | undefined> =>
      ask(async () => {
        const [row] = await drizzle.select().from(branding).where(eq(branding.part, part))
        return row
      }),

    /**
     * Puts a row, or none, in the place of the one of its part. What `check` throws is thrown, and
     * nothing is changed. Answers with what there is then.
     */
    replace: (
      part: Part,
      row: Row | null,
      check: (known: readonly PartHead[]) => void,
    ): Promise<PartHead[]> =>
      alone(async (handle) => {
        check(await readHeads(handle))
        await handle.delete(branding).where(eq(branding.part, part))
        if (row !== null) await handle.insert(branding).values(row)
        return await readHeads(handle)
      }),
  }
}
