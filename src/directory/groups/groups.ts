import type { Actor, AuditEntry } from '#audit/audit.ts'
import { inOrder, type Permission, shippedGroups } from '#auth/permissions.ts'
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
} from './store.ts'

export type Group = CountedGroup & {
  /** Named in the configuration, which sets it anew at each start. */
  readonly isLocked: boolean
  /** There from the first start. */
  readonly isShipped: boolean
}

/** What can be said of a group beside its name, by which everything else knows it. */
export type GroupFields = {
  readonly description: string
  readonly permissions: readonly Permission[]
  /** The word in a token that stands for it; null: its name. */
  readonly idpClaim: string | null
}

/** A group that is not there is `not_found`; other refusals are `conflict` with codes of their own. */
export type Groups = {
  /** By name, from after the one of the name `after`. */
  list(page: {
    limit: number
    after: string | undefined
  }): Promise<{ groups: readonly Group[]; hasMore: boolean }>
  find(name: string): Promise<Group>
  create(actor: Actor, name: string, fields: GroupFields): Promise<Group>
  /** Throws `precondition_failed` where what stands is not what was expected. */
  change(
    actor: Actor,
    name: string,
    wish: { readonly isExpected: IsExpected; readonly fields: Partial<GroupFields> },
  ): Promise<Group>
  remove(actor: Actor, name: string, isExpected: IsExpected): Promise<void>
}

export type GroupsDeps = {
  database: DirectoryDatabase
  makeChange: MakeChange
  config: Pick<Config, 'groups'>
  now: () => Date
}

/** All of them are in the memory of every process. */
const groupsMax = 1_000
const tagChars = 16

export function createGroups({ database, makeChange, config, now }: GroupsDeps): Groups {
  const store = createGroupStore(database)
  const isLocked = (name: string) => Object.hasOwn(config.groups, name)
  const seen = (group: CountedGroup): Group => ({
    ...group,
    isLocked: isLocked(group.name),
    isShipped: Object.hasOwn(shippedGroups, group.name),
  })
  const demandChangeable = async (
    transaction: Transaction,
    name: string,
    isExpected: IsExpected,
  ): Promise<StoredGroup> => {
    const group = orAbsent(await findGroup(transaction, name), name)
    if (isLocked(name)) throw locked()
    if (isExpected(tagOf(group))) return group
    throw new AppError('precondition_failed', 'This group has changed since you read it.')
  }
  return {
    async list({ limit, after }) {
      const groups = await store.list({ limit: limit + 1, after })
      return { groups: groups.slice(0, limit).map(seen), hasMore: groups.length > limit }
    },
    find: async (name) => seen(orAbsent(await store.find(name), name)),
    create: (actor, name, fields) =>
      makeChange(actor, async ({ transaction, record, announce }) => {
        await demandNew(transaction, name, fields)
        const time = now()
        const group = { name, ...fields, createdAt: time, updatedAt: time }
        await addGroup(transaction, group)
        await record(entryOf('group.create', name, null, wireFields(group)))
        await announce({ what: 'groups', id: '' })
        return seen(await withCount(transaction, group))
      }),
    change: (actor, name, { isExpected, fields }) =>
      makeChange(actor, async ({ transaction, record, announce }) => {
        const before = await demandChangeable(transaction, name, isExpected)
        const changes = differences(before, fields)
        if (changes === null) return seen(await withCount(transaction, before))
        const after = { ...before, ...fields, updatedAt: now() }
        if (after.idpClaim !== before.idpClaim) await demandFreeClaim(transaction, after)
        await changeGroup(transaction, after)
        await record(entryOf('group.update', name, changes.before, changes.after))
        await announce({ what: 'groups', id: '' })
        return seen(await withCount(transaction, after))
      }),
    remove: (actor, name, isExpected) =>
      makeChange(actor, async ({ transaction, record, announce }) => {
        const group = await demandChangeable(transaction, name, isExpected)
        if (Object.hasOwn(shippedGroups, name)) throw shipped()
        await dropGroup(transaction, name)
        await record(entryOf('group.delete', name, wireFields(group), null))
        // Whoever was in it by hand is remembered as a member of it.
        await announce({ what: 'all', id: '' })
      }),
  }
}

/** Names exactly this state of a group, apart from who is in it. */
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
  return { description, permissions: inOrder(permissions), idp_claim: idpClaim }
}

/** Null where nothing would change. */
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

async function demandNew(
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
    const sentence = 'There is a group of this name already, whatever its case.'
    throw new AppError('conflict', sentence, { code: 'group_exists', param: 'name' })
  }
  await demandFreeClaim(transaction, { name, idpClaim })
}

async function demandFreeClaim(
  transaction: Transaction,
  { name, idpClaim }: Pick<StoredGroup, 'name' | 'idpClaim'>,
): Promise<void> {
  if (idpClaim === null) return
  const known = await listIdentities(transaction)
  if (!known.some((other) => other.idpClaim === idpClaim && other.name !== name)) return
  const sentence = 'Another group stands for this word of the identity provider.'
  throw new AppError('conflict', sentence, { code: 'idp_claim_taken', param: 'idp_claim' })
}

function folded(name: string): string {
  return name.normalize('NFKC').toUpperCase().toLowerCase()
}

export function orAbsent<T>(group: T | undefined, name: string): T {
  if (group !== undefined) return group
  throw new AppError('not_found', `There is no group with the id "${name}".`, { param: 'id' })
}

export const groupFailures = {
  locked: {
    code: 'group_locked',
    message: 'The configuration says what this group is; change it there, and start again.',
  },
  shipped: { code: 'group_shipped', message: 'A group that was there from the start stays.' },
}

function locked(): AppError {
  const { code, message } = groupFailures.locked
  return new AppError('conflict', message, { code })
}

function shipped(): AppError {
  const { code, message } = groupFailures.shipped
  return new AppError('conflict', message, { code })
}
