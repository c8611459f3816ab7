import { sql } from 'drizzle-orm'
import { fileIndex } from '#db/schema/retrieval.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { deleteUnusedChunks, lockFiles } from '#retrieval/collections/member-store.ts'

const noFile = '00000000-0000-0000-0000-000000000000'

/** Forgets how far files have come in an index that nobody uses; says whether there may be more. */
export async function forgetProgress(
  transaction: Transaction,
  indexId: number,
  filesMax: number,
): Promise<boolean> {
  const rows = await transaction.execute(sql`
    delete from ${fileIndex} where index_id = ${indexId} and file_id in (
      select file_id from ${fileIndex} where index_id = ${indexId} limit ${filesMax})
    returning 1`)
  return rows.length === filesMax
}

/** Takes out of an index that others use what none of them wants; gives where to go on. */
export async function tidyPage(
  transaction: Transaction,
  indexId: number,
  { after, filesMax }: { after: string | null; filesMax: number },
): Promise<string | null> {
  const rows = await transaction.execute<{ id: string }>(sql`
    select file_id as id from ${fileIndex}
    where index_id = ${indexId} and file_id > ${after ?? noFile}::uuid
    order by file_id limit ${filesMax}`)
  const fileIds = rows.map(({ id }) => id)
  await lockFiles(transaction, fileIds)
  await deleteUnusedChunks(transaction, fileIds)
  return fileIds.at(-1) ?? null
}
