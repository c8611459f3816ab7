import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#db/client.ts'
import { mergeAttributes } from '#files/attributes.ts'
import { notifyInBatches, type OnConflict } from '#files/files.ts'
import { nameKey, parseName } from '#files/names.ts'
import type { NodeRecord } from '#files/record.ts'
import { readRecord } from '#files/record-store.ts'
import type { NodeOfKind, TreeDeps } from '#files/tree.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import {
  findDestination,
  freeName,
  nodeNotFound,
  requireDepth,
  requireNode,
  requireNodeQuota,
  requireVersion,
} from './checks.ts'
import {
  findNode,
  findSubtree,
  type NodeRef,
  readStoredAttributes,
  type TreeLocation,
  type TreeNode,
  touchNode,
  transferOwnership,
  writeAttributes,
  writeNode,
} from './store.ts'

export type NodeChange = {
  readonly name?: string
  /** A merge patch. */
  readonly attributes?: unknown
  /** Null: the top level of the principal's own tree. Absent: unchanged. */
  readonly folderId?: string | null
  readonly onConflict: OnConflict
  readonly ifVersion: IsExpected | null
}

/** Renames, moves, and changes the attributes of a node in one transaction. */
export const changeNode =
  (deps: TreeDeps) =>
  (
    principal: RequestPrincipal,
    { kind, id }: NodeOfKind,
    change: NodeChange,
  ): Promise<NodeRecord> => {
    const to = change.folderId ?? null
    const owners = change.folderId === null ? [principal.userId] : []
    return deps.store.inTrees({ nodes: [id, to], owners }, async (transaction) => {
      const found = await findNode(transaction, principal, id)
      const node = requireNode(found, { kind, id, role: 'editor' })
      requireVersion(node, change.ifVersion)
      const attributes =
        change.attributes === undefined
          ? undefined
          : await changeAttributes(transaction, id, change.attributes)
      const destination = await destinationOf(transaction, principal, node, change)
      const moved =
        destination === null ? null : await checkMove(deps, { transaction, node, destination })
      const location = destination ?? node
      const wanted = change.name === undefined ? node.name : parseName(change.name)
      if (destination === null && wanted === node.name) {
        // Its key may be that of a duplicate, which it keeps.
        await touchNode(transaction, id, deps.now())
      } else {
        const { onConflict } = change
        const name = await freeName(transaction, location, {
          name: wanted,
          onConflict,
          exceptId: id,
        })
        const { parentId } = location
        await writeNode(transaction, id, { parentId, name, key: nameKey(name), now: deps.now() })
      }
      if (moved !== null) {
        const ids = moved.map((movedNode) => movedNode.id)
        if (location.ownerId !== node.ownerId) {
          await transferOwnership(transaction, ids, location.ownerId)
        }
        await notifyInBatches(deps.hooks, transaction, 'moved', moved)
      }
      const record = await readRecord(transaction, principal, id)
      if (record === undefined) throw nodeNotFound(kind, id)
      const changes = {
        before: { name: node.name, folder_id: node.parentId, ...attributes?.before },
        after: { name: record.name, folder_id: location.parentId, ...attributes?.after },
      }
      const entry = { kind, id, action: 'update', ...changes, at: deps.now() }
      await recordChange(transaction, principal, entry)
      return record
    })
  }

async function changeAttributes(transaction: Transaction, id: string, patch: unknown) {
  const before = await readStoredAttributes(transaction, id)
  const after = mergeAttributes(before, patch)
  await writeAttributes(transaction, id, after)
  return { before: { attributes: before }, after: { attributes: after } }
}

type Destination = TreeLocation & { depth: number }

/** Null if the node stays in its folder, from the principal's point of view. */
async function destinationOf(
  transaction: Transaction,
  principal: RequestPrincipal,
  node: TreeNode,
  { folderId }: NodeChange,
): Promise<Destination | null> {
  if (folderId === undefined) return null
  if (folderId === (node.isParentReadable ? node.parentId : null)) return null
  if (folderId === null && node.role !== 'owner') throw moveOutOfShare()
  const destination = await findDestination(transaction, principal, folderId)
  if (destination.ownerId !== node.ownerId && node.role !== 'owner') throw moveOutOfShare()
  return destination
}

/** Validates a move and returns all nodes that move. */
async function checkMove(
  { limits: { perOwnerMax } }: TreeDeps,
  {
    transaction,
    node,
    destination,
  }: { transaction: Transaction; node: TreeNode; destination: Destination },
): Promise<readonly NodeRef[]> {
  const { nodes, height } = await findSubtree(transaction, node.id)
  if (nodes.some(({ id }) => id === destination.parentId)) {
    throw new AppError('conflict', 'A folder cannot be moved into itself.', {
      param: 'folder_id',
      code: 'folder_cycle',
    })
  }
  requireDepth(destination, height)
  if (destination.ownerId !== node.ownerId) {
    await requireNodeQuota(transaction, destination, { added: nodes.length, perOwnerMax })
  }
  return nodes
}

function moveOutOfShare(): AppError {
  return new AppError(
    'permission_denied',
    'Only the owner may move this out of their files. Files can be copied.',
    { param: 'folder_id', code: 'move_out_of_share' },
  )
}
