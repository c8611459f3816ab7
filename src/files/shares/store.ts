import { type SQL, sql } from 'drizzle-orm'
import { createQueryRunner } from '#db/query-runner.ts'
import { rankOfRole, roleOfRank } from '#files/roles.ts'
import { type FilesDatabase, findNode, type TreeNode } from '#files/tree/store.ts'
import { type Handle, millis, principalArguments, rankOn } from '#files/view-store.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { GrantedRole, Grantee, GranteeType, Share } from './shares.ts'

type ShareRow = {
  readonly id: string
  readonly from_id: string
  readonly from_name: string | null
  readonly is_inherited: boolean
  readonly principal_type: GranteeType
  readonly principal_id: string
  readonly subject: string | null
  readonly role: number
  readonly granted_by: string
  readonly created_ms: number
}

/** Where a share is: its own rows are of this type and id. */
export type ShareTarget = { readonly type: 'node' | 'collection'; readonly id: string }

/** For whom shares are looked at, and whether only those that give that person something. */
type Reading = { readonly reader: RequestPrincipal; readonly of: RequestPrincipal | null }

export type NewShare = {
  readonly principal: Omit<Grantee, 'name'>
  readonly role: GrantedRole
  readonly grantedBy: string
  readonly now: Date
}

/** What was given to whom. */
export function createShareStore({ drizzle }: FilesDatabase) {
  const ask = createQueryRunner()
  return {
    findNode: (caller: RequestPrincipal, id: string): Promise<TreeNode | undefined> =>
      ask(() => findNode(drizzle, caller, id)),

    /** Those of the place and of the folders above it, oldest first. */
    list: (place: ShareTarget, reading: Reading): Promise<readonly Share[]> =>
      ask(() => readShares(drizzle, place, reading)),

    /** The collections of access mode `collection` that show passages of a file to a user. */
    openedBy: (
      fileId: string,
      user: RequestPrincipal,
    ): Promise<readonly { id: string; name: string }[]> =>
      ask(() =>
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

    /** The groups of somebody as they were last seen, and whether anybody was. */
    findUser: (id: string): Promise<(RequestPrincipal & { subject: string }) | undefined> =>
      ask(async () => {
        const [row] = await drizzle.execute<{ subject: string; groups: readonly string[] }>(sql`
          select subject, coalesce((select json_agg(distinct group_name) from user_group
            where user_id = app_user.id), '[]'::json) as groups
          from app_user where id = ${id}::uuid`)
        return row === undefined ? undefined : { userId: id, ...row }
      }),

    /** Users and groups whose name has the text, those that begin with it first. */
    findPrincipals: (text: string, limit: number): Promise<readonly Grantee[]> =>
      ask(async () => {
        const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
        return drizzle.execute<Grantee>(sql`
          select * from (
            select 'user' as type, id::text as id, subject as name from app_user
            union all
            select 'group', name, name from (
              select name from app_group union select group_name from user_group) known
          ) principal
          where lower(name) like ${pattern}
          order by not starts_with(lower(name), ${text.toLowerCase()}), lower(name), type
          limit ${limit}::integer`)
      }),
  }
}

/** With `only`, one share by its id. */
export async function readShares(
  handle: Handle,
  place: ShareTarget,
  { reader, of }: Reading,
  only?: string,
): Promise<readonly Share[]> {
  const conditions = [
    ...(of === null
      ? []
      : [sql`is_granted_to(share.principal_type, share.principal_id, ${principalArguments(of)})`]),
    ...(only === undefined ? [] : [sql`share.id = ${only}::uuid`]),
  ]
  const rows = await handle.execute<ShareRow>(sql`
    with recursive ${placesOf(place)}
    select share.id, place.id as from_id, place.height > 0 as is_inherited,
      case when place.height > 0 and ${rankOn(sql`place.id`, reader)} is not null
        then place.name end as from_name,
      share.principal_type, share.principal_id, app_user.subject, share.role, share.granted_by,
      ${millis(sql`share.created_at`)} as created_ms
    from place
    join share on share.resource_type = ${place.type} and share.resource_id = place.id
    left join app_user on share.principal_type = 'user'
      and app_user.id::text = share.principal_id
    where ${sql.join([sql`true`, ...conditions], sql` and `)}
    order by place.height, share.id`)
  return rows.map(shareOf)
}

/** The place itself at height 0; above a node, the folders that it is in. */
function placesOf({ type, id }: ShareTarget): SQL {
  if (type === 'collection') {
    return sql`place (id, name, height) as (select ${id}::uuid, null::text, 0)`
  }
  return sql`up (id, name, parent_id, height) as (
      select id, name, parent_id, 0 from node where id = ${id}::uuid
      union all
      select parent.id, parent.name, parent.parent_id, up.height + 1
      from up join node parent on parent.id = up.parent_id),
    place as (select id, name, height from up)`
}

function shareOf(row: ShareRow): Share {
  const role = roleOfRank(row.role)
  if (role === 'owner') throw new Error('a share cannot make an owner')
  return {
    id: row.id,
    principal: {
      type: row.principal_type,
      id: row.principal_id,
      name: row.principal_type === 'group' ? row.principal_id : row.subject,
    },
    role,
    inheritedFrom: row.is_inherited ? { id: row.from_id, name: row.from_name } : null,
    grantedBy: row.granted_by,
    createdAt: new Date(row.created_ms),
  }
}

/** Gives a role, in place of the one that was given to the same principal; says whether it is new. */
export async function writeShare(
  handle: Handle,
  { type, id }: ShareTarget,
  { principal, role, grantedBy, now }: NewShare,
): Promise<{ id: string; isNew: boolean }> {
  const [row] = await handle.execute<{ id: string; is_new: boolean }>(sql`
    insert into share (id, resource_type, resource_id, principal_type, principal_id, role,
      granted_by, created_at)
    values (${Bun.randomUUIDv7()}::uuid, ${type}, ${id}::uuid, ${principal.type}, ${principal.id},
      ${rankOfRole(role)}::smallint, ${grantedBy}::uuid, ${now.toISOString()}::timestamptz)
    on conflict (resource_type, resource_id, principal_type, principal_id)
    do update set role = excluded.role, granted_by = excluded.granted_by
    returning id, xmax = 0 as is_new`)
  if (row === undefined) throw new Error('a share was not written')
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
