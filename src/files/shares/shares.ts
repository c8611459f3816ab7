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

/** Whom a resource is shared with. */
export type Grantee = {
  readonly type: 'user' | 'group' | 'everyone'
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

export type Shares = ReturnType<typeof createShares>

const sharesMax = 1_000
const granteesMax = 20

/** A shared resource with its owner and the role of the principal. */
type ResourceAccess = {
  readonly target: ShareTarget
  readonly ownerId: string
  readonly role: Role
}

/** Changes require the role `manager`. A resource that the principal may not read is `not_found`. */
export function createShares(deps: { database: FilesDatabase; now: () => Date }) {
  const store = createShareStore(deps.database)
  const { inTrees } = createTreeStore(deps.database)

  const accessTo = async (
    principal: RequestPrincipal,
    resource: SharedResource,
    find = store.findNode,
  ): Promise<ResourceAccess> => {
    const { type, id } = resource
    if (type === 'collection') return { target: { type, id }, ...resource }
    const node = await find(principal, id)
    return {
      target: { type: 'node', id },
      ...requireNode(node, { kind: type, id, role: 'viewer' }),
    }
  }

  /** Checks the access inside the transaction, with the tree locked. */
  const changing = <T>(
    principal: RequestPrincipal,
    resource: SharedResource,
    work: (transaction: Transaction, access: ResourceAccess) => Promise<T>,
  ): Promise<T> => {
    const nodes = resource.type === 'collection' ? [] : [resource.id]
    return inTrees({ nodes, owners: [] }, async (transaction) => {
      const find: typeof store.findNode = (...node) => findNode(transaction, ...node)
      return work(transaction, await accessTo(principal, resource, find))
    })
  }

  return {
    /** Principals who may not share see the shares that apply to them. */
    async list(principal: RequestPrincipal, resource: SharedResource) {
      const { target, role } = await accessTo(principal, resource)
      const grantedTo = isAtLeast(role, 'manager') ? null : principal
      return store.list(target, { principal, grantedTo })
    },
    /** A grantee has one role on a resource: the new one replaces the old. */
    async add(
      principal: RequestPrincipal,
      resource: SharedResource,
      { grantee, mustBeKnown, role }: NewGrant,
    ) {
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
    /** Throws `conflict` of code `inherited` for a share of a folder above. */
    change: (
      principal: RequestPrincipal,
      resource: SharedResource,
      shareId: string,
      role: GrantedRole,
    ) =>
      changing(principal, resource, async (transaction, access) => {
        const share = await findShare(transaction, principal, access, shareId)
        requireRole(access.role, 'manager', resource.type)
        requireDirect(share)
        await changeShare(transaction, shareId, { role, grantedBy: principal.userId })
        return findShare(transaction, principal, access, shareId)
      }),
    /** Users may also remove their own access. */
    remove: (principal: RequestPrincipal, resource: SharedResource, shareId: string) =>
      changing(principal, resource, async (transaction, access) => {
        const share = await findShare(transaction, principal, access, shareId)
        const isOwnAccess = share.grantee.type === 'user' && share.grantee.id === principal.userId
        if (!isOwnAccess) requireRole(access.role, 'manager', resource.type)
        requireDirect(share)
        await deleteShare(transaction, shareId)
      }),
    /** The reasons for a user's access. Other users than the principal require the role `manager`. */
    async access(
      principal: RequestPrincipal,
      resource: SharedResource,
      userId: string,
    ): Promise<Access> {
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
    findGrantees: (text: string) => store.findGrantees(text, granteesMax),
  }
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
