import type { Role } from '#files/files.ts'
import { isAtLeast, rankOfRole } from '#files/roles.ts'
import { requireNode, requireRole } from '#files/tree/checks.ts'
import { createTreeStore, type FilesDatabase, findNode } from '#files/tree/store.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import {
  changeShare,
  countShares,
  createShareStore,
  deleteShare,
  readShares,
  type ShareTarget,
  writeShare,
} from './store.ts'

export type GranteeType = 'user' | 'group' | 'everyone'

export type Grantee = {
  readonly type: GranteeType
  /** A user's id, a group's name, or `*`. */
  readonly id: string
  /** Null for a user who was never seen, and for everyone. */
  readonly name: string | null
}

export type GrantedRole = Exclude<Role, 'owner'>

export type Share = {
  readonly id: string
  readonly principal: Grantee
  readonly role: GrantedRole
  /** The folder above that it comes from; without its name where the reader may not read it. */
  readonly inheritedFrom: { readonly id: string; readonly name: string | null } | null
  readonly grantedBy: string
  readonly createdAt: Date
}

/** What is shared. Who asks for a collection says what the caller may do with it. */
export type Shared =
  | { readonly type: 'file' | 'folder'; readonly id: string }
  | {
      readonly type: 'collection'
      readonly id: string
      readonly ownerId: string
      readonly role: Role
    }

export type Access = {
  readonly user: { readonly id: string; readonly name: string | null }
  readonly role: Role | null
  readonly isOwner: boolean
  readonly via: readonly Share[]
  /** Collections that show passages of the file to the user, who may not read the file for that. */
  readonly collections: readonly { readonly id: string; readonly name: string }[]
}

/** A user by the id, or by the subject that the identity provider knows. */
export type NewGrant = {
  readonly principal: Omit<Grantee, 'name'>
  /** Whether a user must have been seen before: an id that is nobody's is a mistake. */
  readonly mustBeKnown: boolean
  readonly role: GrantedRole
}

/**
 * What was given to whom. A change needs the role `manager`. What the caller may not read is
 * `not_found`.
 */
export type Shares = {
  /** Who may not share sees what gives them something, and no more. */
  list(caller: RequestPrincipal, shared: Shared): Promise<readonly Share[]>
  /** A principal has one role on a thing: the new one takes the place of the old. */
  add(
    caller: RequestPrincipal,
    shared: Shared,
    grant: NewGrant,
  ): Promise<{ share: Share; isNew: boolean }>
  /** Throws `conflict` of code `inherited` for what has to be changed at a folder above. */
  change(
    caller: RequestPrincipal,
    shared: Shared,
    shareId: string,
    role: GrantedRole,
  ): Promise<Share>
  /** One may also give back what was given to oneself. */
  remove(caller: RequestPrincipal, shared: Shared, shareId: string): Promise<void>
  /** Why somebody has access. Of others, it takes the role `manager` to ask. */
  access(caller: RequestPrincipal, shared: Shared, userId: string): Promise<Access>
  principals(text: string): Promise<readonly Grantee[]>
}

const sharesMax = 1_000
const principalsMax = 20

/** What the caller is allowed, and whom the thing belongs to. */
type Seen = { readonly place: ShareTarget; readonly ownerId: string; readonly role: Role }

export function createShares(deps: { database: FilesDatabase; now: () => Date }): Shares {
  const store = createShareStore(deps.database)
  const { inTrees } = createTreeStore(deps.database)
  const see = async (caller: RequestPrincipal, shared: Shared): Promise<Seen> =>
    shared.type === 'collection'
      ? { place: { type: 'collection', id: shared.id }, ...shared }
      : seenNode(await store.findNode(caller, shared.id), shared)

  /** As `see`, with what is seen staying so until the end. */
  const changing = <T>(
    caller: RequestPrincipal,
    shared: Shared,
    work: (transaction: Transaction, seen: Seen) => Promise<T>,
  ): Promise<T> =>
    inTrees({ nodes: shared.type === 'collection' ? [] : [shared.id], owners: [] }, async (tx) =>
      work(
        tx,
        shared.type === 'collection'
          ? { place: { type: 'collection', id: shared.id }, ...shared }
          : seenNode(await findNode(tx, caller, shared.id), shared),
      ),
    )

  return {
    async list(caller, shared) {
      const { place, role } = await see(caller, shared)
      return store.list(place, { reader: caller, of: isAtLeast(role, 'manager') ? null : caller })
    },
    async add(caller, shared, { principal, mustBeKnown, role }) {
      requireRole((await see(caller, shared)).role, 'manager', shared.type)
      if (mustBeKnown && (await store.findUser(principal.id)) === undefined) throw unknownUser()
      return changing(caller, shared, async (transaction, seen) => {
        requireRole(seen.role, 'manager', shared.type)
        if (principal.type === 'user' && principal.id === seen.ownerId) throw sharedWithOwner()
        const grant = { principal, role, grantedBy: caller.userId, now: deps.now() }
        const { id, isNew } = await writeShare(transaction, seen.place, grant)
        if (isNew && (await countShares(transaction, seen.place)) > sharesMax) throw tooMany()
        return { share: await findShare(transaction, caller, seen, id), isNew }
      })
    },
    change: (caller, shared, shareId, role) =>
      changing(caller, shared, async (transaction, seen) => {
        const share = await findShare(transaction, caller, seen, shareId)
        requireRole(seen.role, 'manager', shared.type)
        demandDirect(share)
        await changeShare(transaction, shareId, { role, grantedBy: caller.userId })
        return findShare(transaction, caller, seen, shareId)
      }),
    remove: (caller, shared, shareId) =>
      changing(caller, shared, async (transaction, seen) => {
        const share = await findShare(transaction, caller, seen, shareId)
        const isTheirs = share.principal.type === 'user' && share.principal.id === caller.userId
        if (!isTheirs) requireRole(seen.role, 'manager', shared.type)
        demandDirect(share)
        await deleteShare(transaction, shareId)
      }),
    async access(caller, shared, userId) {
      const { place, ownerId, role } = await see(caller, shared)
      if (userId !== caller.userId) requireRole(role, 'manager', shared.type)
      const known = await store.findUser(userId)
      const groups = userId === caller.userId ? caller.groups : (known?.groups ?? [])
      const via = await store.list(place, { reader: caller, of: { userId, groups } })
      const user = { id: userId, name: known?.subject ?? null }
      const isOwner = ownerId === userId
      const collections =
        shared.type === 'file' ? await store.openedBy(place.id, { userId, groups }) : []
      return { user, isOwner, via, collections, role: isOwner ? 'owner' : highest(via) }
    },
    principals: (text) => store.findPrincipals(text, principalsMax),
  }
}

function seenNode(
  found: Awaited<ReturnType<typeof findNode>>,
  { type: kind, id }: { type: 'file' | 'folder'; id: string },
): Seen {
  const { ownerId, role } = requireNode(found, { kind, id, role: 'viewer' })
  return { place: { type: 'node', id }, ownerId, role }
}

/** What the caller does not see in the list is not there. */
async function findShare(
  transaction: Transaction,
  caller: RequestPrincipal,
  { place, role }: Seen,
  id: string,
): Promise<Share> {
  const of = isAtLeast(role, 'manager') ? null : caller
  const [share] = await readShares(transaction, place, { reader: caller, of }, id)
  if (share !== undefined) return share
  throw new AppError('not_found', `There is no share with the id "${id}".`, { param: 'share_id' })
}

function demandDirect({ inheritedFrom }: Share): void {
  if (inheritedFrom === null) return
  const sentence = 'This comes from a folder above; change it there.'
  throw new AppError('conflict', sentence, { code: 'inherited' })
}

function highest(shares: readonly Share[]): GrantedRole | null {
  return shares.reduce<GrantedRole | null>(
    (known, { role }) => (known === null || rankOfRole(role) > rankOfRole(known) ? role : known),
    null,
  )
}

function unknownUser(): AppError {
  return new AppError('unprocessable', 'Nobody with this id was ever seen here.', {
    param: 'principal.id',
    code: 'principal_not_found',
  })
}

function sharedWithOwner(): AppError {
  return new AppError('unprocessable', 'Its owner has every right on it already.', {
    param: 'principal',
    code: 'principal_is_owner',
  })
}

function tooMany(): AppError {
  return new AppError('unprocessable', `It is shared ${sharesMax} times, which is the limit.`, {
    code: 'too_many_shares',
  })
}
