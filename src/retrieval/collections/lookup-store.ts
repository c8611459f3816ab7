import { type SQL, sql } from 'drizzle-orm'
import { userIdOf } from '#auth/principal.ts'
import { collection } from '#db/schema/retrieval.ts'
import { roleOfRank } from '#files/files.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import { collectionRank, expiry, uuidArray } from '#retrieval/sql-store.ts'
import type { Collection } from './collections.ts'
import type { Handle } from './store.ts'

/**
 * Finds collections by the references of callers: an id, `owner/name`, or a name. A name means the
 * caller's own collection, else the only visible one of that name. Whatever is stored holds ids.
 */

/** What decides about the rights of a caller. */
export type CollectionAccess = Pick<Collection, 'id' | 'name' | 'accessMode' | 'isExpired' | 'role'>

type Found = Omit<CollectionAccess, 'role'> & {
  readonly position: number
  readonly rank: number
  readonly ownerId: string
  readonly ownerName: string | null
}

/** Listed in the error for an ambiguous name. */
const candidatesMax = 10

/** Unknown and hidden collections are undefined. Throws `unprocessable` of code `ambiguous_name`. */
export async function findAccess(
  handle: Handle,
  caller: RequestPrincipal,
  reference: string,
): Promise<CollectionAccess | undefined> {
  const [found] = await findByReferences(handle, { caller, references: [reference] })
  return found
}

/**
 * The collection of each reference, in the same order. `isAll` includes those that the caller may not
 * see, for administrators.
 */
export async function findByReferences(
  handle: Handle,
  {
    caller,
    references,
    isAll = false,
    pathOf = () => 'name',
  }: {
    caller: RequestPrincipal
    references: readonly string[]
    isAll?: boolean
    /** The field of a reference in the request, for errors. */
    pathOf?: (index: number) => string
  },
): Promise<readonly (CollectionAccess | undefined)[]> {
  if (references.length === 0) return []
  const rank = isAll ? sql`coalesce(${collectionRank(caller)}, 1)` : collectionRank(caller)
  const isOwn = sql`collection.owner_id = ${caller.userId}::uuid`
  const queries = references.map(
    (reference, position) => sql`(
      select ${position}::integer as position, collection.id, collection.name,
        collection.access_mode as "accessMode", ${rank} as rank,
        coalesce(${expiry} <= now(), false) as "isExpired",
        collection.owner_id as "ownerId", app_user.subject as "ownerName"
      from ${collection} left join app_user on app_user.id = collection.owner_id
      where ${isReferredTo(reference)} and ${rank} is not null
      order by ${isOwn} desc, collection.id limit ${candidatesMax + 1})`,
  )
  const rows = await handle.execute<Found>(sql.join(queries, sql` union all `))
  const byPosition = Map.groupBy(rows, ({ position }) => position)
  return references.map((reference, index) => {
    const [first, second] = byPosition.get(index) ?? []
    if (first === undefined) return undefined
    if (second !== undefined && first.ownerId !== caller.userId) {
      throw ambiguous(reference, byPosition.get(index) ?? [], pathOf(index))
    }
    const { id, name, accessMode, isExpired } = first
    return { id, name, accessMode, isExpired, role: roleOfRank(first.rank) }
  })
}

/** The names of those collections that the caller sees, by id. */
export async function readNames(
  handle: Handle,
  caller: RequestPrincipal,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await handle.execute<{ id: string; name: string }>(sql`
    select id, name from ${collection}
    where id = any(${uuidArray(ids)}) and ${collectionRank(caller)} is not null`)
  return new Map(rows.map(({ id, name }) => [id, name]))
}

function isReferredTo(reference: string): SQL {
  if (isUuid(reference)) return sql`collection.id = ${reference}::uuid`
  if (reference.includes('\0') || !reference.isWellFormed()) return sql`false`
  const slash = reference.lastIndexOf('/')
  const isNamed = sql`collection.name = ${reference.slice(slash + 1)}`
  if (slash === -1) return isNamed
  // A subject may look like an id.
  const owner = reference.slice(0, slash)
  const ownerIds = [userIdOf(owner), ...(isUuid(owner) ? [owner] : [])]
  return sql`${isNamed} and collection.owner_id = any(${uuidArray(ownerIds)})`
}

function ambiguous(reference: string, found: readonly Found[], path: string) {
  const listed = found
    .slice(0, candidatesMax)
    .map(({ id, name, ownerId, ownerName }) => `${id} (${ownerName ?? ownerId}/${name})`)
  const more = found.length > candidatesMax ? ', …' : ''
  return refused(
    path,
    `Several collections that you may see are named "${reference}": ${listed.join(', ')}${more}. Send an id, or "owner/name".`,
    'ambiguous_name',
  )
}
