import { recordChange } from '#db/audit-entries.ts'
import type { Transaction } from '#db/client.ts'
import { type FileHooks, isAtLeast, notifyInBatches, type OnConflict } from '#files/files.ts'
import { nameKey } from '#files/names.ts'
import type { NodeRecord } from '#files/record.ts'
import { readRecord } from '#files/record-store.ts'
import {
  freeName,
  nodeNotFound,
  requireDepth,
  requireNode,
  requireVersion,
} from '#files/tree/checks.ts'
import {
  deleteNode,
  depthOf,
  findNode,
  findSubtree,
  hasChildren,
  type TreeLocation,
  writeNode,
} from '#files/tree/store.ts'
import type { NodeOfKind, TreeDeps } from '#files/tree.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import { type PeriodicTask, repeat } from '#lib/repeat.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import type { Storage } from '#storage/storage.ts'
import type { Log } from '#telemetry/log.ts'
import {
  createSweepStore,
  findTrashed,
  findTrashedSubtree,
  type SweepDatabase,
  type TrashedNode,
  trashNodes,
  untrashNodes,
} from './store.ts'

/**
 * Moves a node with everything in it to the trash of its owner, and counts the trashed nodes. Throws
 * `folder_not_empty`.
 */
export const removeNode =
  (deps: TreeDeps) =>
  (
    principal: RequestPrincipal,
    { kind, id }: NodeOfKind,
    { isRecursive, ifVersion }: { isRecursive: boolean; ifVersion: IsExpected | null },
  ) =>
    deps.store.inTrees({ nodes: [id], owners: [] }, async (transaction) => {
      const found = await findNode(transaction, principal, id)
      const node = requireNode(found, { kind, id, role: 'editor' })
      requireVersion(node, ifVersion)
      const { name } = node
      if (!isRecursive && (await hasChildren(transaction, id))) {
        throw new AppError('conflict', 'The folder is not empty; delete it with recursive=true.', {
          param: 'recursive',
          code: 'folder_not_empty',
        })
      }
      const { nodes } = await findSubtree(transaction, id)
      const ids = nodes.map((node) => node.id)
      await trashNodes(transaction, ids, { trashId: id, now: deps.now() })
      await notifyInBatches(deps.hooks, transaction, 'trashed', nodes)
      const files = nodes.filter((node) => node.kind === 'file').length
      const counts = { files, folders: nodes.length - files }
      const after = { in_trash: true, ...(kind === 'folder' ? counts : {}) }
      const entry = { kind, id, action: 'delete', before: { name }, after, at: deps.now() }
      await recordChange(transaction, principal, entry)
      return counts
    })

/** Deletes a file permanently, whether or not it is in the trash. Requires its owner. */
export const deleteFile =
  (deps: TreeDeps) =>
  (
    principal: RequestPrincipal,
    { id, ifVersion }: { id: string; ifVersion: IsExpected | null },
  ): Promise<void> =>
    deps.store.inTrees({ nodes: [id], owners: [] }, async (transaction) => {
      const trashed = await findTrashed(transaction, principal, id)
      if (trashed?.role !== 'owner' || trashed.kind !== 'file') {
        const found = await findNode(transaction, principal, id)
        requireVersion(requireNode(found, { kind: 'file', id, role: 'owner' }), ifVersion)
      }
      await notifyInBatches(deps.hooks, transaction, 'deleted', [{ id, kind: 'file' }])
      await deleteNode(transaction, id)
      const entry = { kind: 'file' as const, id, action: 'delete', at: deps.now() }
      await recordChange(transaction, principal, { ...entry, after: { in_trash: false } })
    })

/**
 * Restores a node with everything that was trashed along with it, to its folder or, if that is gone,
 * to the top level of its owner. A node outside the trash is returned unchanged.
 * Throws `gone` after the retention time of the trash.
 */
export const restoreNode =
  (deps: TreeDeps) =>
  (
    principal: RequestPrincipal,
    { kind, id }: NodeOfKind,
    { onConflict }: { onConflict: OnConflict },
  ): Promise<NodeRecord> =>
    deps.store.inTrees({ nodes: [id], owners: [] }, async (transaction) => {
      const trashed = await findTrashed(transaction, principal, id)
      if (trashed === undefined) {
        requireNode(await findNode(transaction, principal, id), { kind, id, role: 'editor' })
      } else {
        if (trashed.kind !== kind || !mayRestore(trashed)) throw nodeNotFound(kind, id)
        requireRetained(deps, trashed)
        await restoreSubtree(deps, transaction, trashed, onConflict)
        const entry = { kind, id, action: 'restore', after: { name: trashed.name }, at: deps.now() }
        await recordChange(transaction, principal, entry)
      }
      const record = await readRecord(transaction, principal, id)
      if (record === undefined) throw nodeNotFound(kind, id)
      return record
    })

/** A node without a live parent returns to the top level, which only its owner can see. */
function mayRestore({ role, isParentLive }: TrashedNode): boolean {
  if (role === null) return false
  return role === 'owner' || (isParentLive && isAtLeast(role, 'editor'))
}

function requireRetained({ settings, now }: TreeDeps, { trashedAt, kind }: TrashedNode): void {
  const retentionMs = settings.current().files.trash_seconds * 1_000
  if (now().getTime() < trashedAt.getTime() + retentionMs) return
  throw new AppError('gone', `The retention time of this trashed ${kind} has passed.`, {
    code: 'purged',
  })
}

async function restoreSubtree(
  { hooks, now }: TreeDeps,
  transaction: Transaction,
  node: TrashedNode,
  onConflict: OnConflict,
): Promise<void> {
  const parentId = node.isParentLive ? node.parentId : null
  const location: TreeLocation = { ownerId: node.ownerId, parentId }
  const { nodes, height } = await findTrashedSubtree(transaction, node)
  requireDepth({ depth: parentId === null ? 0 : await depthOf(transaction, parentId) }, height)
  const name = await freeName(transaction, location, {
    name: node.name,
    onConflict,
    exceptId: node.id,
  })
  await writeNode(transaction, node.id, { parentId, name, key: nameKey(name), now: now() })
  await untrashNodes(
    transaction,
    nodes.map(({ id }) => id),
  )
  await notifyInBatches(hooks, transaction, 'restored', nodes)
}

export type FileSweepDeps = {
  database: SweepDatabase
  storage: Pick<Storage, 'remove' | 'removeUnfinished'>
  settings: CurrentSettings
  hooks: Pick<FileHooks, 'changed'>
  log: Pick<Log, 'warn'>
  now: () => Date
}

const sweepEveryMs = 60_000
/** Searching for unused content reads the whole table, and so does vacuuming. */
const sweepsPerFullScan = 10
/** The rest waits for the next sweep. */
const stepsMax = 500

/** Periodically deletes expired files and uploads, old trash and content that nothing uses. */
export function startFileSweep(deps: FileSweepDeps): PeriodicTask {
  const sweep = createFileSweep(deps)
  return repeat(sweep, { everyMs: sweepEveryMs, log: deps.log, failed: 'file sweep failed' })
}

/** Returns a function that runs one sweep. */
export function createFileSweep({ database, storage, settings, hooks, now }: FileSweepDeps) {
  const store = createSweepStore(database)
  let sweeps = 0
  return async (): Promise<void> => {
    const time = now()
    const retentionMs = settings.current().files.trash_seconds * 1_000
    const retainedSince = new Date(time.getTime() - retentionMs)
    await repeatSteps(() => store.dropExpired(hooks, time))
    await repeatSteps(() => store.dropUploads(time))
    const isComplete = await repeatSteps(() => store.dropTrashed(hooks, retainedSince))
    // Deleting a folder cascades to its files, whose content must have been dropped before.
    const namesKeptSince = new Date(retainedSince.getTime() - retentionMs)
    if (isComplete) await repeatSteps(() => store.dropNodes(namesKeptSince))
    if (sweeps++ % sweepsPerFullScan > 0) return
    await repeatSteps(() => store.dropContents(time, storage.remove))
    await storage.removeUnfinished(time)
    await store.vacuum()
  }
}

/** Returns whether nothing is left to do. */
async function repeatSteps(step: () => Promise<boolean>): Promise<boolean> {
  for (let steps = 0; steps < stepsMax; steps++) {
    if (!(await step())) return true
  }
  return false
}
