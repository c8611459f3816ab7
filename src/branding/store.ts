import { eq, sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { branding } from '#db/schema/portal.ts'

export type BrandingDatabase = Pick<Database, 'drizzle'>

type Row = typeof branding.$inferSelect
export type Part = Row['part']
/** A part without its bytes. */
export type PartHead = Pick<Row, 'part' | 'description' | 'sha256'>

/** The branding table has at most one row per part. */
export function createBrandingStore({ drizzle }: BrandingDatabase) {
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
  /** An advisory lock, since a missing row cannot be locked. */
  const exclusively = <T>(work: (handle: Handle) => Promise<T>): Promise<T> =>
    query(() =>
      drizzle.transaction(async (transaction) => {
        await transaction.execute(
          sql`select pg_advisory_xact_lock(hashtextextended('branding', 0))`,
        )
        return await work(transaction)
      }),
    )
  return {
    heads: (): Promise<PartHead[]> => query(() => readHeads(drizzle)),

    find: (part: Part): Promise<Row | undefined> =>
      query(async () => {
        const [row] = await drizzle.select().from(branding).where(eq(branding.part, part))
        return row
      }),

    /**
     * Replaces the row of a part, or deletes it for null, and returns all heads. Changes nothing and
     * rethrows if `check` throws.
     */
    replace: (
      part: Part,
      row: Row | null,
      check: (current: readonly PartHead[]) => void,
    ): Promise<PartHead[]> =>
      exclusively(async (handle) => {
        check(await readHeads(handle))
        await handle.delete(branding).where(eq(branding.part, part))
        if (row !== null) await handle.insert(branding).values(row)
        return await readHeads(handle)
      }),
  }
}
