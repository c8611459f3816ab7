import { notifyInBatches } from '#files/changes.ts'
import type { NodeView, OnConflict } from '#files/files.ts'
import { nameKey } from '#files/names.ts'
import { deleteNode, writeNode } from '#files/node-store.ts'
import { isAtLeast } from '#files/roles.ts'
import {
  freeName,
  type NodeKind,
  nodeNotFound,
  requireDepth,
  requireNode,
  requireVersion,
} from '#files/tree/checks.ts'
import {
  depthOf,
  findNode,
  findSubtree,
  hasChildren,
  type TreeLocation,
} from '#files/tree/store.ts'
import type { TreeDeps } from '#files/tree.ts'
import { readView } from '#files/view-store.ts'
import type { Transaction } from '#jobs/jobs.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import {
  findTrashed,
  findTrashedSubtree,
  type TrashedNode,
  trashNodes,
  untrashNodes,
} from './store.ts'

type Which = { readonly kind: NodeKind; readonly id: string }

/** How many were put into the trash, the node itself included. */
export type Removed = { readonly files: number; readonly folders: number }

/** Puts a node, and all that is in it, into the trash of its owner. */
export async function removeNode(
  deps: TreeDeps,
  caller: RequestPrincipal,
  { kind, id }: Which,
  how: { isRecursive: boolean; ifVersion: IsExpected | null },
): Promise<Removed> {
  return deps.store.inTrees({ nodes: [id], owners: [] }, async (transaction) => {
    const found = await findNode(transaction, caller, id)
    requireVersion(requireNode(found, { kind, id, role: 'editor' }), how.ifVersion)
    if (!how.isRecursive && (await hasChildren(transaction, id))) throw notEmpty()
    const { members } = await findSubtree(transaction, id)
    const ids = members.map((member) => member.id)
    await trashNodes(transaction, ids, { trashId: id, now: deps.now() })
    await notifyInBatches(deps.hooks, transaction, 'trashed', members)
    const files = members.filter((member) => member.kind === 'file').length
    return { files, folders: members.length - files }
  })
}

/** Deletes a file for ever, be it in the trash or not. Its owner alone may. */
export async function deleteFile(
  deps: TreeDeps,
  caller: RequestPrincipal,
  { id, ifVersion }: { id: string; ifVersion: IsExpected | null },
): Promise<void> {
  await deps.store.inTrees({ nodes: [id], owners: [] }, async (transaction) => {
    const trashed = await findTrashed(transaction, caller, id)
    if (trashed?.role !== 'owner' || trashed.kind !== 'file') {
      const found = await findNode(transaction, caller, id)
      requireVersion(requireNode(found, { kind: 'file', id, role: 'owner' }), ifVersion)
    }
    await notifyInBatches(deps.hooks, transaction, 'deleted', [{ id, kind: 'file' }])
    await deleteNode(transaction, id)
  })
}

/**
 * Takes a node out of the trash, with all that was taken along with it: to where it was or, where
 * that folder is no more, to the top of its owner's tree. What is not in the trash stays as it is.
 */
export async function restoreNode(
  deps: TreeDeps,
  caller: RequestPrincipal,
  { kind, id }: Which,
  { onConflict }: { onConflict: OnConflict },
): Promise<NodeView> {
  return deps.store.inTrees({ nodes: [id], owners: [] }, async (transaction) => {
    const trashed = await findTrashed(transaction, caller, id)
    if (trashed === undefined) {
      requireNode(await findNode(transaction, caller, id), { kind, id, role: 'editor' })
    } else {
      if (trashed.kind !== kind || !mayRestore(trashed)) throw nodeNotFound(kind, id)
      demandKept(deps, trashed)
      await putBack(deps, transaction, trashed, onConflict)
    }
    const view = await readView(transaction, caller, id)
    if (view === undefined) throw nodeNotFound(kind, id)
    return view
  })
}

/** Who could have deleted it; what comes back at the top of a tree, nobody but its owner would see. */
function mayRestore({ role, isParentLive }: TrashedNode): boolean {
  if (role === null) return false
  return role === 'owner' || (isParentLive && isAtLeast(role, 'editor'))
}

function demandKept({ settings, now }: TreeDeps, { trashedAt, kind }: TrashedNode): void {
  if (now().getTime() < trashedAt.getTime() + settings.trashS * 1_000) return
  throw new AppError('gone', `This ${kind} was in the trash for too long.`, { code: 'purged' })
}

async function putBack(
  { hooks, now }: TreeDeps,
  transaction: Transaction,
  node: TrashedNode,
  onConflict: OnConflict,
): Promise<void> {
  const place: TreeLocation = { ...node, parentId: node.isParentLive ? node.parentId : null }
  const { members, height } = await findTrashedSubtree(transaction, node)
  const depth = place.parentId === null ? 0 : await depthOf(transaction, place.parentId)
  requireDepth({ depth }, height)
  const wanted = { name: node.name, onConflict, exceptId: node.id }
  const name = await freeName(transaction, place, wanted)
  const { parentId } = place
  await writeNode(transaction, node.id, { parentId, name, key: nameKey(name), now: now() })
  const ids = members.map(({ id }) => id)
  await untrashNodes(transaction, ids)
  await notifyInBatches(hooks, transaction, 'restored', members)
}

function notEmpty(): AppError {
  return new AppError('conflict', 'The folder is not empty; delete it with recursive=true.', {
    param: 'recursive',
    code: 'folder_not_empty',
  })
}
