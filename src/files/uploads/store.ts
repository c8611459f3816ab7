import { and, eq, inArray, sql } from 'drizzle-orm'
import type { Database, Transaction } from '#db/client.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { upload, uploadPart } from '#db/schema/files.ts'
import type { StoredContent } from '#storage/storage.ts'

export type UploadRow = typeof upload.$inferSelect
export type PartRow = typeof uploadPart.$inferSelect
type UploadKey = Pick<UploadRow, 'id' | 'ownerId'>

export type UploadsDatabase = Pick<Database, 'drizzle'>

/** State of uploads in parts. Every upload is found for its owner only. */
export function createUploadStore({ drizzle }: UploadsDatabase) {
  const query = createQueryRunner()
  return {
    /** False if the owner has `pendingMax` uploads that have not expired. */
    insert(row: UploadRow, { pendingMax }: { pendingMax: number }): Promise<boolean> {
      return query(async () => {
        const pending = await drizzle.$count(
          upload,
          and(
            eq(upload.ownerId, row.ownerId),
            eq(upload.status, 'pending'),
            sql`${upload.expiresAt} > ${row.createdAt.toISOString()}::timestamptz`,
          ),
        )
        if (pending >= pendingMax) return false
        await drizzle.insert(upload).values(row)
        return true
      })
    },

    async find(key: UploadKey): Promise<UploadRow | undefined> {
      const rows = await query(async () => drizzle.select().from(upload).where(isUpload(key)))
      return rows[0]
    },

    /** Of the parts with these ids, in any order. */
    findParts: ({ id }: UploadKey, partIds: readonly string[]): Promise<readonly PartRow[]> =>
      query(async () =>
        drizzle
          .select()
          .from(uploadPart)
          .where(and(eq(uploadPart.uploadId, id), inArray(uploadPart.id, [...partIds]))),
      ),

    inTransaction: <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> =>
      query(() => drizzle.transaction(work)),
  }
}

/** The row stays locked until the end of the transaction. */
export async function lockUpload(
  transaction: Transaction,
  key: UploadKey,
): Promise<UploadRow | undefined> {
  const rows = await transaction.select().from(upload).where(isUpload(key)).for('update')
  return rows[0]
}

/** The number and the size of all parts, also of those that the file will not have. */
export async function totalOfParts(
  transaction: Transaction,
  uploadId: string,
): Promise<{ count: number; bytes: number }> {
  const [total] = await transaction
    .select({
      count: sql<number>`count(*)::integer`,
      bytes: sql<number>`coalesce(sum(${uploadPart.bytes}), 0)::float8`,
    })
    .from(uploadPart)
    .where(eq(uploadPart.uploadId, uploadId))
  return total ?? { count: 0, bytes: 0 }
}

export async function insertPart(
  transaction: Transaction,
  part: Omit<PartRow, 'sha256' | 'bytes'> & { content: StoredContent },
): Promise<void> {
  const { content, ...row } = part
  const { sha256, bytes } = content
  await transaction.insert(uploadPart).values({ ...row, sha256, bytes })
}

/** Ends it and releases the contents of its parts to the sweep. */
export async function endUpload(
  transaction: Transaction,
  id: string,
  end: { status: 'cancelled' } | { status: 'completed'; fileId: string; partsDigest: string },
): Promise<void> {
  await transaction.update(upload).set(end).where(eq(upload.id, id))
  await transaction.delete(uploadPart).where(eq(uploadPart.uploadId, id))
}

function isUpload({ id, ownerId }: UploadKey) {
  return and(eq(upload.id, id), eq(upload.ownerId, ownerId))
}
