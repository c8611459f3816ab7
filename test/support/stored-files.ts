import { sql } from 'drizzle-orm'
import type { Database } from '#db/client.ts'

export type StoredNode = {
  readonly id: string
  readonly ownerId: string
  readonly parentId: string | null
  readonly isFolder?: boolean
  readonly attributes?: Record<string, string | number | boolean>
  readonly isTrashed?: boolean
}

const rowsPerStatement = 2_000

/** Inserts files and folders without contents; folders must precede their children. */
export async function storeNodes(
  { drizzle }: Pick<Database, 'drizzle'>,
  nodes: readonly StoredNode[],
): Promise<void> {
  await drizzle.execute(sql`
    insert into blob (sha256, bytes, put_at) values ('none', 0, now()) on conflict do nothing`)
  for (let at = 0; at < nodes.length; at += rowsPerStatement) {
    const rows = nodes.slice(at, at + rowsPerStatement).map((node) => ({
      id: node.id,
      owner_id: node.ownerId,
      parent_id: node.parentId,
      kind: node.isFolder === true ? 'folder' : 'file',
      attributes: node.attributes ?? {},
      trashed: node.isTrashed === true,
    }))
    const json = JSON.stringify(rows)
    const columns = sql`(id uuid, owner_id uuid, parent_id uuid, kind text, attributes jsonb,
      trashed boolean)`
    await drizzle.execute(sql`
      insert into node (id, kind, parent_id, owner_id, created_by, name, name_key, trashed_at,
        created_at, updated_at)
      select id, kind, parent_id, owner_id, owner_id, id::text, id::text,
        case when trashed then now() end, now(), now()
      from jsonb_to_recordset(${json}::jsonb) as row ${columns}`)
    await drizzle.execute(sql`
      insert into file (node_id, bytes, mime_type, sha256, attributes, purpose)
      select id, 0, 'text/plain', 'none', attributes, 'user_data'
      from jsonb_to_recordset(${json}::jsonb) as row ${columns} where kind = 'file'`)
  }
}

export async function storeShares(
  { drizzle }: Pick<Database, 'drizzle'>,
  shares: readonly {
    readonly resourceType: 'node' | 'collection'
    readonly resourceId: string
    readonly principalType: 'user' | 'group' | 'everyone'
    readonly principalId: string
    readonly role: number
  }[],
): Promise<void> {
  for (const share of shares) {
    await drizzle.execute(sql`
      insert into share (id, resource_type, resource_id, principal_type, principal_id, role,
        granted_by, created_at)
      values (${crypto.randomUUID()}::uuid, ${share.resourceType}, ${share.resourceId}::uuid,
        ${share.principalType}, ${share.principalId}, ${share.role}::smallint,
        ${crypto.randomUUID()}::uuid, now())
      on conflict (resource_type, resource_id, principal_type, principal_id)
      do update set role = excluded.role`)
  }
}
