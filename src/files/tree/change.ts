import { mergeAttributes } from '#files/attributes.ts'
import { notifyInBatches } from '#files/changes.ts'
import type { NodeView, OnConflict } from '#files/files.ts'
import { nameKey, parseName } from '#files/names.ts'
import {
  readStoredAttributes,
  transferOwnership,
  writeAttributes,
  writeNode,
} from '#files/node-store.ts'
import type { TreeDeps } from '#files/tree.ts'
import { readView } from '#files/view-store.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import {
  findDestination,
  freeName,
  type NodeKind,
  nodeNotFound,
  requireDepth,
  requireNode,
  requireNodeQuota,
  requireVersion,
} from './checks.ts'
import { findNode, findSubtree, type NodeRef, type TreeLocation, type TreeNode } from './store.ts'

export type NodeChange = {
  readonly name?: string
  /** As a merge patch. */
  readonly attributes?: unknown
  /** Null: to the top of the caller's own tree. Absent: it stays where it is. */
  readonly folderId?: string | null
  readonly onConflict: OnConflict
  readonly ifVersion: IsExpected | null
}

/** Renames, moves, and changes the attributes of a file or folder; one change for all of it. */
export async function changeNode(
  deps: TreeDeps,
  caller: RequestPrincipal,
  { kind, id }: { kind: NodeKind; id: string },
  change: NodeChange,
): Promise<NodeView> {
  const to = change.folderId ?? null
  const owners = change.folderId === null ? [caller.userId] : []
  return deps.store.inTrees({ nodes: [id, to], owners }, async (transaction) => {
    const found = await findNode(transaction, caller, id)
    const node = requireNode(found, { kind, id, role: 'editor' })
    requireVersion(node, change.ifVersion)
    if (change.attributes !== undefined) {
      const known = await readStoredAttributes(transaction, id)
      const attributes = mergeAttributes(known, change.attributes)
      await writeAttributes(transaction, id, attributes)
    }
    const place = await newPlace(transaction, caller, node, change)
    const moved = place === null ? null : await checkMove(deps, { transaction, node, place })
    const at = place ?? node
    const wanted = change.name === undefined ? node.name : parseName(change.name)
    const { onConflict } = change
    const name = await freeName(transaction, at, { name: wanted, onConflict, exceptId: id })
    const { parentId } = at
    await writeNode(transaction, id, { parentId, name, key: nameKey(name), now: deps.now() })
    if (moved !== null) {
      const ids = moved.map((member) => member.id)
      if (at.ownerId !== node.ownerId) await transferOwnership(transaction, ids, at.ownerId)
      await notifyInBatches(deps.hooks, transaction, 'moved', moved)
    }
    const view = await readView(transaction, caller, id)
    if (view === undefined) throw nodeNotFound(kind, id)
    return view
  })
}

type NewPlace = TreeLocation & { depth: number }

/** Null where it stays where it is, as far as the caller can see that. */
async function newPlace(
  transaction: Transaction,
  caller: RequestPrincipal,
  node: TreeNode,
  { folderId }: NodeChange,
): Promise<NewPlace | null> {
  if (folderId === undefined) return null
  if (folderId === (node.isParentReadable ? node.parentId : null)) return null
  if (folderId === null && node.role !== 'owner') throw moveOutOfShare()
  const place = await findDestination(transaction, caller, folderId)
  if (place.ownerId !== node.ownerId && node.role !== 'owner') throw moveOutOfShare()
  return place
}

/** What a move asks of both sides; answers with all that moves. */
async function checkMove(
  { settings: { perOwnerMax } }: TreeDeps,
  { transaction, node, place }: { transaction: Transaction; node: TreeNode; place: NewPlace },
): Promise<readonly NodeRef[]> {
  const { members, height } = await findSubtree(transaction, node.id)
  if (members.some(({ id }) => id === place.parentId)) {
    throw new AppError('conflict', 'A folder cannot be moved into itself.', {
      param: 'folder_id',
      code: 'folder_cycle',
    })
  }
  requireDepth(place, height)
  if (place.ownerId !== node.ownerId) {
    await requireNodeQuota(transaction, place, { added: members.length, perOwnerMax })
  }
  return members
}

function moveOutOfShare(): AppError {
  return new AppError(
    'permission_denied',
    'Only its owner may move this out of their files; you can copy files.',
    { param: 'folder_id', code: 'move_out_of_share' },
  )
}
