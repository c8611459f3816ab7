import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'

export type StoredCollection = {
  readonly id: string
  readonly name: string
  readonly ownerId: string
  /** Default: the owner. */
  readonly addedBy?: string
  readonly accessMode?: 'files' | 'collection'
  readonly indexId: number
  readonly fileIds: readonly string[]
}

/** Inserts a collection with its members; the default access mode is `files`. */
export async function storeCollection(
  { drizzle }: Pick<Database, 'drizzle'>,
  {
    id,
    name,
    ownerId,
    addedBy = ownerId,
    accessMode = 'files',
    indexId,
    fileIds,
  }: StoredCollection,
): Promise<void> {
  await drizzle.execute(sql`
    insert into collection (id, name, owner_id, access_mode, index_id, created_at, updated_at)
    values (${id}::uuid, ${name}, ${ownerId}::uuid, ${accessMode}, ${indexId}::integer, now(), now())`)
  await drizzle.execute(sql`
    insert into collection_file (collection_id, file_id, attributes, followed, added_by, added_at)
    select ${id}::uuid, file_id, '{}', false, ${addedBy}::uuid, now()
    from unnest(${arrayOf(fileIds)}::uuid[]) file_id`)
}

/** Marks files of `storeNodes` as indexed, without passages. */
export async function storeIngested(
  { drizzle }: Pick<Database, 'drizzle'>,
  ingested: {
    readonly indexId: number
    readonly fileIds: readonly string[]
    readonly chunksPerFile: number
  },
): Promise<void> {
  const { indexId, fileIds, chunksPerFile } = ingested
  await drizzle.execute(sql`
    insert into file_index (file_id, index_id, state, sha256, chunks, updated_at)
    select file_id, ${indexId}::integer, 'done', 'none', ${chunksPerFile}::integer, now()
    from unnest(${arrayOf(fileIds)}::uuid[]) file_id`)
}

function arrayOf(ids: readonly string[]): string {
  return `{${ids.join(',')}}`
}
