import type { Actor, AuditEntry } from '#audit/audit.ts'
import { type Permission, shippedGroups, sortPermissions } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import type { DirectoryDatabase, MakeChange, Transaction } from '#directory/change-store.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { JsonObject } from '#lib/json.ts'
import {
  addGroup,
  type CountedGroup,
  changeGroup,
  createGroupStore,
  dropGroup,
  findGroup,
  listIdentities,
  type StoredGroup,
  withCount,
} from './group-store.ts'

export type Group = CountedGroup & {
  /** Defined in the configuration, which resets it at each start. */
  readonly isLocked: boolean
  /** Built in. */
  readonly isShipped: boolean
}

/** The fields of a group other than its name, which is its identity. */
export type GroupFields = {
  readonly description: string
  readonly permissions: readonly Permission[]
  /** The claim value that maps to it; null: its name. */
  readonly idpClaim: string | null
}

/** Unknown groups are `not_found`; other errors are `conflict` with specific codes. */
export type Groups = {
  /** By name, after the group `after`. */
  list(page: {
    limit: number
    after: string | undefined
  }): Promise<{ groups: readonly Group[]; hasMore: boolean }>
  find(name: string): Promise<Group>
  create(actor: Actor, name: string, fields: GroupFields): Promise<Group>
  /** Throws `precondition_failed` if the current version is not the expected one. */
  change(
    actor: Actor,
    name: string,
    change: { readonly isExpected: IsExpected; readonly fields: Partial<GroupFields> },
  ): Promise<Group>
  remove(actor: Actor, name: string, isExpected: IsExpected): Promise<void>
}

export type GroupsDeps = {
  database: DirectoryDatabase
  makeChange: MakeChange
  config: Pick<Config, 'groups'>
  now: () => Date
}

/** Every process holds all groups in memory. */
const groupsMax = 1_000
const tagChars = 16

export function createGroups({ database, makeChange, config, now }: GroupsDeps): Groups {
  const store = createGroupStore(database)
  const isLocked = (name: string) => Object.hasOwn(config.groups, name)
  const withOrigin = (group: CountedGroup): Group => ({
    ...group,
    isLocked: isLocked(group.name),
    isShipped: Object.hasOwn(shippedGroups, group.name),
  })
  const requireChangeable = async (
    transaction: Transaction,
    name: string,
    isExpected: IsExpected,
  ): Promise<StoredGroup> => {
    const group = requireGroup(await findGroup(transaction, name), name)
    if (isLocked(name)) throw conflict(groupErrors.locked)
    if (isExpected(tagOf(group))) return group
    throw new AppError('precondition_failed', 'This group has changed since you read it.')
  }
  return {
    async list({ limit, after }) {
      const groups = await store.list({ limit: limit + 1, after })
      return { groups: groups.slice(0, limit).map(withOrigin), hasMore: groups.length > limit }
    },
    find: async (name) => withOrigin(requireGroup(await store.find(name), name)),
    create: (actor, name, fields) =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        await requireNewName(transaction, name, fields)
        const time = now()
        const group = { name, ...fields, createdAt: time, updatedAt: time }
        await addGroup(transaction, group)
        await record(entryOf('group.create', name, null, wireFields(group)))
        await notify({ what: 'groups', id: '' })
        return withOrigin(await withCount(transaction, group))
      }),
    change: (actor, name, { isExpected, fields }) =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        const before = await requireChangeable(transaction, name, isExpected)
        const changes = differences(before, fields)
        if (changes === null) return withOrigin(await withCount(transaction, before))
        const after = { ...before, ...fields, updatedAt: now() }
        if (after.idpClaim !== before.idpClaim) await requireFreeClaim(transaction, after)
        await changeGroup(transaction, after)
        await record(entryOf('group.update', name, changes.before, changes.after))
        await notify({ what: 'groups', id: '' })
        return withOrigin(await withCount(transaction, after))
      }),
    remove: (actor, name, isExpected) =>
      makeChange(actor, async ({ transaction, record, notify }) => {
        const group = await requireChangeable(transaction, name, isExpected)
        if (Object.hasOwn(shippedGroups, name)) throw conflict(groupErrors.shipped)
        await dropGroup(transaction, name)
        await record(entryOf('group.delete', name, wireFields(group), null))
        // The permissions of its manual members are cached.
        await notify({ what: 'all', id: '' })
      }),
  }
}

/** The version of a group, without its members. */
export function tagOf({
  name,
  description,
  permissions,
  idpClaim,
  updatedAt,
}: StoredGroup): string {
  const state = JSON.stringify([name, description, permissions, idpClaim, updatedAt])
  return new Bun.CryptoHasher('sha256').update(state).digest('hex').slice(0, tagChars)
}

function wireFields({ description, permissions, idpClaim }: GroupFields): JsonObject {
  return { description, permissions: sortPermissions(permissions), idp_claim: idpClaim }
}

/** Null if nothing changes. */
function differences(
  known: GroupFields,
  fields: Partial<GroupFields>,
): { before: JsonObject; after: JsonObject } | null {
  const before = wireFields(known)
  const after = wireFields({ ...known, ...fields })
  const changed = Object.keys(after).filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  )
  const only = (all: JsonObject) => Object.fromEntries(changed.map((name) => [name, all[name]]))
  return changed.length === 0 ? null : { before: only(before), after: only(after) }
}

function entryOf(
  action: string,
  id: string,
  before: JsonObject | null,
  after: JsonObject | null,
): Omit<AuditEntry, 'actor'> {
  return { action, resource: { type: 'group', id }, changes: { before, after } }
}

async function requireNewName(
  transaction: Transaction,
  name: string,
  { idpClaim }: GroupFields,
): Promise<void> {
  const known = await listIdentities(transaction)
  if (known.length >= groupsMax) {
    const sentence = `There are ${groupsMax} groups, which is the limit; delete one first.`
    throw new AppError('unprocessable', sentence, { code: 'too_many_groups' })
  }
  if (known.some((other) => folded(other.name) === folded(name))) {
    throw conflict(groupErrors.exists, 'name')
  }
  await requireFreeClaim(transaction, { name, idpClaim })
}

async function requireFreeClaim(
  transaction: Transaction,
  { name, idpClaim }: Pick<StoredGroup, 'name' | 'idpClaim'>,
): Promise<void> {
  if (idpClaim === null) return
  const known = await listIdentities(transaction)
  const isTaken = known.some((other) => other.idpClaim === idpClaim && other.name !== name)
  if (isTaken) throw conflict(groupErrors.claimTaken, 'idp_claim')
}

function folded(name: string): string {
  return name.normalize('NFKC').toUpperCase().toLowerCase()
}

export function requireGroup<T>(group: T | undefined, name: string): T {
  if (group !== undefined) return group
  throw new AppError('not_found', `There is no group with the id "${name}".`, { param: 'id' })
}

export const groupErrors = {
  exists: {
    code: 'group_exists',
    message: 'A group of this name exists already; names are compared regardless of case.',
  },
  claimTaken: {
    code: 'idp_claim_taken',
    message: 'Another group has this claim value of the identity provider.',
  },
  locked: {
    code: 'group_locked',
    message: 'The configuration file defines this group; change it there and restart.',
  },
  shipped: { code: 'group_shipped', message: 'A built-in group cannot be deleted.' },
}

function conflict({ code, message }: { code: string; message: string }, param?: string): AppError {
  return new AppError('conflict', message, { code, ...(param === undefined ? {} : { param }) })
}
