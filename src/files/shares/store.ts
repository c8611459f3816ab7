import { type SQL, sql } from 'drizzle-orm'
import { findUnknownGroup } from '#db/known-groups.ts'
import { createQueryRunner } from '#db/query-runner.ts'
import { rankOfRole, roleOfRank } from '#files/files.ts'
import { type Handle, millis, principalArguments, rankOn } from '#files/record-store.ts'
import { type FilesDatabase, findNode, type TreeNode } from '#files/tree/store.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { GrantedRole, Grantee, ShareRecord } from './record.ts'

/** The resource of share rows. */
export type ShareTarget = { readonly type: 'node' | 'collection'; readonly id: string }

type ShareFilter = {
  /** Folder names are shown if this principal may read them. */
  readonly principal: RequestPrincipal
  /** Only shares that apply to this user; null: all. */
  readonly grantedTo: RequestPrincipal | null
}

type NewShare = {
  readonly grantee: Omit<Grantee, 'name'>
  readonly role: GrantedRole
  readonly grantedBy: string
  readonly now: Date
}

export function createShareStore({ drizzle }: FilesDatabase) {
  const query = createQueryRunner()
  return {
    findNode: (principal: RequestPrincipal, id: string): Promise<TreeNode | undefined> =>
      query(() => findNode(drizzle, principal, id)),

    /** Shares of the target and of the folders above it, oldest first. */
    list: (target: ShareTarget, filter: ShareFilter): Promise<readonly ShareRecord[]> =>
      query(() => readShares(drizzle, target, filter)),

    /** The collections of access mode `collection` that show passages of a file to a user. */
    openedBy: (
      fileId: string,
      user: RequestPrincipal,
    ): Promise<readonly { id: string; name: string }[]> =>
      query(() =>
        drizzle.execute<{ id: string; name: string }>(sql`
          select collection.id, collection.name
          from collection_file member
          join collection on collection.id = member.collection_id
          where member.file_id = ${fileId}::uuid and collection.access_mode = 'collection'
            and (collection.owner_id = ${user.userId}::uuid or exists (
              select 1 from share
              where share.resource_type = 'collection' and share.resource_id = collection.id
                and is_granted_to(share.principal_type, share.principal_id, ${principalArguments(user)})))
            and may_share_node(member.file_id, coalesce(member.shared_by, member.added_by))
          order by collection.id`),
      ),

    /** A user with the groups of their last token; undefined if they have never signed in. */
    findUser: (id: string): Promise<(RequestPrincipal & { subject: string }) | undefined> =>
      query(async () => {
        const [row] = await drizzle.execute<{ subject: string; groups: readonly string[] }>(sql`
          select subject, coalesce((select json_agg(distinct group_name) from user_group
            where user_id = app_user.id), '[]'::json) as groups
          from app_user where id = ${id}::uuid`)
        return row === undefined ? undefined : { userId: id, ...row }
      }),

    /** Users and groups whose name contains the text, prefix matches first. */
    findGrantees: (text: string, limit: number): Promise<readonly Grantee[]> =>
      query(async () => {
        const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
        return drizzle.execute<Grantee>(sql`
          select * from (
            select 'user' as type, id::text as id, subject as name from app_user
            union all
            select 'group', name, name from (
              select name from app_group union select group_name from user_group) known_group
          ) grantee
          where lower(name) like ${pattern}
          order by not starts_with(lower(name), ${text.toLowerCase()}), lower(name), type
          limit ${limit}::integer`)
      }),
  }
}

/** Whether it is a group of this platform, or one of a token. */
export async function isGroupKnown(handle: Handle, name: string): Promise<boolean> {
  return (await findUnknownGroup(handle, [name])) === undefined
}

/** With `only`, one share by its id. */
export async function readShares(
  handle: Handle,
  target: ShareTarget,
  { principal, grantedTo }: ShareFilter,
  only?: string,
): Promise<readonly ShareRecord[]> {
  const conditions = [
    ...(grantedTo === null
      ? []
      : [
          sql`is_granted_to(share.principal_type, share.principal_id, ${principalArguments(grantedTo)})`,
        ]),
    ...(only === undefined ? [] : [sql`share.id = ${only}::uuid`]),
  ]
  type Row = Omit<ShareRecord, 'object' | 'role' | 'created_at'> & {
    rank: number
    created_at: number
  }
  const rows = await handle.execute<Row>(sql`
    with recursive ${resourcesOf(target)}
    select share.id, share.role as rank, share.granted_by,
      json_build_object('type', share.principal_type, 'id', share.principal_id, 'name',
        case share.principal_type when 'group' then share.principal_id else app_user.subject end
      ) as principal,
      case when resource.height > 0 then json_build_object('type', 'folder',
        'id', resource.id, 'name',
        case when ${rankOn(sql`resource.id`, principal)} is not null then resource.name end
      ) end as inherited_from,
      ${millis(sql`share.created_at`)} as created_at
    from resource
    join share on share.resource_type = ${target.type} and share.resource_id = resource.id
    left join app_user on share.principal_type = 'user'
      and app_user.id::text = share.principal_id
    where ${sql.join([sql`true`, ...conditions], sql` and `)}
    order by resource.height, share.id`)
  return rows.map(({ rank, ...share }) => {
    const role = roleOfRank(rank)
    if (role === 'owner') throw new Error('a share cannot have the role owner')
    const createdAt = new Date(share.created_at).toISOString()
    return { ...share, object: 'share', role, created_at: createdAt }
  })
}

/** The table expression `resource`: the target at height 0, and the folders above a node. */
function resourcesOf({ type, id }: ShareTarget): SQL {
  if (type === 'collection') {
    return sql`resource (id, name, height) as (select ${id}::uuid, null::text, 0)`
  }
  return sql`ancestor (id, name, parent_id, height) as (
      select id, name, parent_id, 0 from node where id = ${id}::uuid
      union all
      select parent.id, parent.name, parent.parent_id, ancestor.height + 1
      from ancestor join node parent on parent.id = ancestor.parent_id),
    resource as (select id, name, height from ancestor)`
}

/** Inserts a share, or changes the role of the existing share of the grantee. */
export async function writeShare(
  handle: Handle,
  { type, id }: ShareTarget,
  { grantee, role, grantedBy, now }: NewShare,
): Promise<{ id: string; isNew: boolean }> {
  const [row] = await handle.execute<{ id: string; is_new: boolean }>(sql`
    insert into share (id, resource_type, resource_id, principal_type, principal_id, role,
      granted_by, created_at)
    values (${Bun.randomUUIDv7()}::uuid, ${type}, ${id}::uuid, ${grantee.type}, ${grantee.id},
      ${rankOfRole(role)}::smallint, ${grantedBy}::uuid, ${now.toISOString()}::timestamptz)
    on conflict (resource_type, resource_id, principal_type, principal_id)
    do update set role = excluded.role, granted_by = excluded.granted_by
    returning id, xmax = 0 as is_new`)
  if (row === undefined) throw new Error('share was not stored')
  return { id: row.id, isNew: row.is_new }
}

export async function changeShare(
  handle: Handle,
  id: string,
  { role, grantedBy }: Pick<NewShare, 'role' | 'grantedBy'>,
): Promise<void> {
  await handle.execute(sql`
    update share set role = ${rankOfRole(role)}::smallint, granted_by = ${grantedBy}::uuid
    where id = ${id}::uuid`)
}

export async function deleteShare(handle: Handle, id: string): Promise<void> {
  await handle.execute(sql`delete from share where id = ${id}::uuid`)
}

export async function countShares(handle: Handle, { type, id }: ShareTarget): Promise<number> {
  const [row] = await handle.execute<{ count: number }>(sql`
    select count(*)::integer as count from share
    where resource_type = ${type} and resource_id = ${id}::uuid`)
  return row?.count ?? 0
}
