import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#db/client.ts'
import { isAtLeast, type Role, rankOfRole } from '#files/files.ts'
import { requireNode, requireRole } from '#files/tree/checks.ts'
import { createTreeStore, type FilesDatabase, findNode } from '#files/tree/store.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import type { AccessRecord, GrantedRole, Grantee, ShareRecord } from './record.ts'
import {
  changeShare,
  countShares,
  createShareStore,
  deleteShare,
  isGroupKnown,
  readShares,
  type ShareTarget,
  writeShare,
} from './store.ts'

/** The role on a collection is checked by the code of collections. */
export type SharedResource =
  | { readonly type: 'file' | 'folder'; readonly id: string }
  | {
      readonly type: 'collection'
      readonly id: string
      readonly ownerId: string
      readonly role: Role
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

  const auditShare = (
    transaction: Transaction,
    entry: {
      principal: RequestPrincipal
      resource: SharedResource
      action: string
      before?: ShareRecord
      after?: ShareRecord
    },
  ) => {
    const { principal, resource, action, before, after } = entry
    const fields = ({ principal: { type, id }, role }: ShareRecord) => ({
      principal: { type, id },
      role,
    })
    return recordChange(transaction, principal, {
      kind: resource.type,
      id: resource.id,
      action,
      ...(before && { before: fields(before) }),
      ...(after && { after: fields(after) }),
      at: deps.now(),
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
        if (grantee.type === 'group' && !(await isGroupKnown(transaction, grantee.id))) {
          throw refused('principal.id', 'There is no group of this name.', 'principal_not_found')
        }
        if (grantee.type === 'user' && grantee.id === access.ownerId) {
          throw refused('principal', 'The owner already has all rights.', 'principal_is_owner')
        }
        const grant = { grantee, role, grantedBy: principal.userId, now: deps.now() }
        const { id, isNew } = await writeShare(transaction, access.target, grant)
        if (isNew && (await countShares(transaction, access.target)) > sharesMax) {
          throw refused('', `The limit of ${sharesMax} shares is reached.`, 'too_many_shares')
        }
        const share = await findShare(transaction, principal, access, id)
        const action = isNew ? 'share.add' : 'share.update'
        await auditShare(transaction, { principal, resource, action, after: share })
        return { share, isNew }
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
        const after = await findShare(transaction, principal, access, shareId)
        const action = 'share.update'
        await auditShare(transaction, { principal, resource, action, before: share, after })
        return after
      }),
    /** Users may also remove their own access. */
    remove: (principal: RequestPrincipal, resource: SharedResource, shareId: string) =>
      changing(principal, resource, async (transaction, access) => {
        const share = await findShare(transaction, principal, access, shareId)
        const { type, id } = share.principal
        const isOwnAccess = type === 'user' && id === principal.userId
        if (!isOwnAccess) requireRole(access.role, 'manager', resource.type)
        requireDirect(share)
        await deleteShare(transaction, shareId)
        await auditShare(transaction, {
          principal,
          resource,
          action: 'share.remove',
          before: share,
        })
      }),
    /** The reasons for a user's access. Other users than the principal require the role `manager`. */
    async access(
      principal: RequestPrincipal,
      resource: SharedResource,
      userId: string,
    ): Promise<AccessRecord> {
      const { target, ownerId, role } = await accessTo(principal, resource)
      if (userId !== principal.userId) requireRole(role, 'manager', resource.type)
      const user = await store.findUser(userId)
      const groups = userId === principal.userId ? principal.groups : (user?.groups ?? [])
      const list = await store.list(target, { principal, grantedTo: { userId, groups } })
      const collections =
        resource.type === 'file' ? await store.openedBy(target.id, { userId, groups }) : []
      const isOwner = ownerId === userId
      return {
        object: 'access',
        user: { id: userId, name: user?.subject ?? null },
        role: isOwner ? 'owner' : highestRole(list),
        via: [
          ...(isOwner ? [{ type: 'owner' as const }] : []),
          ...list.map((share) => ({ type: 'share' as const, share })),
          ...collections.map((collection) => ({ type: 'collection' as const, collection })),
        ],
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
): Promise<ShareRecord> {
  const grantedTo = isAtLeast(role, 'manager') ? null : principal
  const [share] = await readShares(transaction, target, { principal, grantedTo }, id)
  if (share !== undefined) return share
  throw new AppError('not_found', `There is no share with the id "${id}".`, { param: 'share_id' })
}

function requireDirect({ inherited_from: inheritedFrom }: ShareRecord): void {
  if (inheritedFrom === null) return
  const sentence = 'This share belongs to a folder above; change it there.'
  throw new AppError('conflict', sentence, { code: 'inherited' })
}

function highestRole(shares: readonly ShareRecord[]): GrantedRole | null {
  return shares.reduce<GrantedRole | null>(
    (highest, { role }) =>
      highest === null || rankOfRole(role) > rankOfRole(highest) ? role : highest,
    null,
  )
}
