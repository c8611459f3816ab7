import { sql } from 'drizzle-orm'
import type { Transaction } from '#db/client.ts'
import { fileIndex } from '#db/schema/retrieval.ts'
import { deleteUnusedChunks, lockFiles } from '#retrieval/collections/member-store.ts'
import { minFileId } from './file-store.ts'

/** Deletes rows of an unused index; tells whether there may be more. */
export async function deleteFileRows(
  transaction: Transaction,
  indexId: number,
  rowsMax: number,
): Promise<boolean> {
  const rows = await transaction.execute(sql`
    delete from ${fileIndex} where index_id = ${indexId} and file_id in (
      select file_id from ${fileIndex} where index_id = ${indexId} limit ${rowsMax})
    returning 1`)
  return rows.length === rowsMax
}

/** Deletes the chunks that no collection needs from a page of files; returns the next position. */
export async function cleanPage(
  transaction: Transaction,
  indexId: number,
  { after, filesMax }: { after: string | null; filesMax: number },
): Promise<string | null> {
  const rows = await transaction.execute<{ id: string }>(sql`
    select file_id as id from ${fileIndex}
    where index_id = ${indexId} and file_id > ${after ?? minFileId}::uuid
    order by file_id limit ${filesMax}`)
  const fileIds = rows.map(({ id }) => id)
  await lockFiles(transaction, fileIds)
  await deleteUnusedChunks(transaction, fileIds)
  return fileIds.at(-1) ?? null
}
