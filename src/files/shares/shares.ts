import { isAtLeast, type Role, rankOfRole } from '#files/files.ts'
import { requireNode, requireRole } from '#files/tree/checks.ts'
import { createTreeStore, type FilesDatabase, findNode } from '#files/tree/store.ts'
import type { Transaction } from '#jobs/jobs.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
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

/** Whom a resource is shared with. */
export type Grantee = {
  readonly type: GranteeType
  /** A user's id, a group's name, or `*`. */
  readonly id: string
  /** Null for everyone, and for a user who has never signed in. */
  readonly name: string | null
}

export type GrantedRole = Exclude<Role, 'owner'>

export type Share = {
  readonly id: string
  readonly grantee: Grantee
  readonly role: GrantedRole
  /** The shared folder above; without its name if the principal may not read it. */
  readonly inheritedFrom: { readonly id: string; readonly name: string | null } | null
  readonly grantedBy: string
  readonly createdAt: Date
}

/** The role on a collection is checked by the code of collections. */
export type SharedResource =
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
  /** Collections that show passages of the file to the user, without read access to the file. */
  readonly collections: readonly { readonly id: string; readonly name: string }[]
}

export type NewGrant = {
  readonly grantee: Omit<Grantee, 'name'>
  /** Whether a user must have signed in before; an unknown id is probably a mistake. */
  readonly mustBeKnown: boolean
  readonly role: GrantedRole
}

/**
 * Changes require the role `manager`. A resource that the principal may not read is `not_found`.
 */
export type Shares = {
  /** Principals who may not share see the shares that apply to them. */
  list(principal: RequestPrincipal, resource: SharedResource): Promise<readonly Share[]>
  /** A grantee has one role on a resource: the new one replaces the old. */
  add(
    principal: RequestPrincipal,
    resource: SharedResource,
    grant: NewGrant,
  ): Promise<{ share: Share; isNew: boolean }>
  /** Throws `conflict` of code `inherited` for a share of a folder above. */
  change(
    principal: RequestPrincipal,
    resource: SharedResource,
    shareId: string,
    role: GrantedRole,
  ): Promise<Share>
  /** Users may also remove their own access. */
  remove(principal: RequestPrincipal, resource: SharedResource, shareId: string): Promise<void>
  /** The reasons for a user's access. Other users than the principal require the role `manager`. */
  access(principal: RequestPrincipal, resource: SharedResource, userId: string): Promise<Access>
  findGrantees(text: string): Promise<readonly Grantee[]>
}

const sharesMax = 1_000
const granteesMax = 20

/** A shared resource with its owner and the role of the principal. */
type ResourceAccess = {
  readonly target: ShareTarget
  readonly ownerId: string
  readonly role: Role
}

export function createShares(deps: { database: FilesDatabase; now: () => Date }): Shares {
  const store = createShareStore(deps.database)
  const { inTrees } = createTreeStore(deps.database)

  const accessTo = async (principal: RequestPrincipal, resource: SharedResource) =>
    resource.type === 'collection'
      ? collectionAccess(resource)
      : nodeAccess(await store.findNode(principal, resource.id), resource)

  /** Checks the access inside the transaction, with the tree locked. */
  const changing = <T>(
    principal: RequestPrincipal,
    resource: SharedResource,
    work: (transaction: Transaction, access: ResourceAccess) => Promise<T>,
  ): Promise<T> => {
    const nodes = resource.type === 'collection' ? [] : [resource.id]
    return inTrees({ nodes, owners: [] }, async (transaction) =>
      work(
        transaction,
        resource.type === 'collection'
          ? collectionAccess(resource)
          : nodeAccess(await findNode(transaction, principal, resource.id), resource),
      ),
    )
  }

  return {
    async list(principal, resource) {
      const { target, role } = await accessTo(principal, resource)
      const grantedTo = isAtLeast(role, 'manager') ? null : principal
      return store.list(target, { principal, grantedTo })
    },
    async add(principal, resource, { grantee, mustBeKnown, role }) {
      requireRole((await accessTo(principal, resource)).role, 'manager', resource.type)
      if (mustBeKnown && (await store.findUser(grantee.id)) === undefined) {
        throw refused('principal.id', 'There is no known user with this id.', 'principal_not_found')
      }
      return changing(principal, resource, async (transaction, access) => {
        requireRole(access.role, 'manager', resource.type)
        if (grantee.type === 'user' && grantee.id === access.ownerId) {
          throw refused('principal', 'The owner already has all rights.', 'principal_is_owner')
        }
        const grant = { grantee, role, grantedBy: principal.userId, now: deps.now() }
        const { id, isNew } = await writeShare(transaction, access.target, grant)
        if (isNew && (await countShares(transaction, access.target)) > sharesMax) {
          throw refused('', `The limit of ${sharesMax} shares is reached.`, 'too_many_shares')
        }
        return { share: await findShare(transaction, principal, access, id), isNew }
      })
    },
    change: (principal, resource, shareId, role) =>
      changing(principal, resource, async (transaction, access) => {
        const share = await findShare(transaction, principal, access, shareId)
        requireRole(access.role, 'manager', resource.type)
        requireDirect(share)
        await changeShare(transaction, shareId, { role, grantedBy: principal.userId })
        return findShare(transaction, principal, access, shareId)
      }),
    remove: (principal, resource, shareId) =>
      changing(principal, resource, async (transaction, access) => {
        const share = await findShare(transaction, principal, access, shareId)
        const isOwnAccess = share.grantee.type === 'user' && share.grantee.id === principal.userId
        if (!isOwnAccess) requireRole(access.role, 'manager', resource.type)
        requireDirect(share)
        await deleteShare(transaction, shareId)
      }),
    async access(principal, resource, userId) {
      const { target, ownerId, role } = await accessTo(principal, resource)
      if (userId !== principal.userId) requireRole(role, 'manager', resource.type)
      const user = await store.findUser(userId)
      const groups = userId === principal.userId ? principal.groups : (user?.groups ?? [])
      const via = await store.list(target, { principal, grantedTo: { userId, groups } })
      const isOwner = ownerId === userId
      return {
        user: { id: userId, name: user?.subject ?? null },
        isOwner,
        via,
        collections:
          resource.type === 'file' ? await store.openedBy(target.id, { userId, groups }) : [],
        role: isOwner ? 'owner' : highestRole(via),
      }
    },
    findGrantees: (text) => store.findGrantees(text, granteesMax),
  }
}

function collectionAccess({
  id,
  ownerId,
  role,
}: Extract<SharedResource, { type: 'collection' }>): ResourceAccess {
  return { target: { type: 'collection', id }, ownerId, role }
}

function nodeAccess(
  node: Awaited<ReturnType<typeof findNode>>,
  { type: kind, id }: { type: 'file' | 'folder'; id: string },
): ResourceAccess {
  const { ownerId, role } = requireNode(node, { kind, id, role: 'viewer' })
  return { target: { type: 'node', id }, ownerId, role }
}

/** Throws `not_found` for a share that the principal cannot list. */
async function findShare(
  transaction: Transaction,
  principal: RequestPrincipal,
  { target, role }: ResourceAccess,
  id: string,
): Promise<Share> {
  const grantedTo = isAtLeast(role, 'manager') ? null : principal
  const [share] = await readShares(transaction, target, { principal, grantedTo }, id)
  if (share !== undefined) return share
  throw new AppError('not_found', `There is no share with the id "${id}".`, { param: 'share_id' })
}

function requireDirect({ inheritedFrom }: Share): void {
  if (inheritedFrom === null) return
  const sentence = 'This share belongs to a folder above; change it there.'
  throw new AppError('conflict', sentence, { code: 'inherited' })
}

function highestRole(shares: readonly Share[]): GrantedRole | null {
  return shares.reduce<GrantedRole | null>(
    (highest, { role }) =>
      highest === null || rankOfRole(role) > rankOfRole(highest) ? role : highest,
    null,
  )
}
