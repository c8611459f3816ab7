import type { Config } from '#config/schema.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import type { Storage } from '#storage/storage.ts'
import type { FileHooks } from './files.ts'
import { createListing } from './listing/listing.ts'
import { deleteFile, removeNode, restoreNode } from './trash/trash.ts'
import { createAdditions } from './tree/add.ts'
import { changeNode } from './tree/change.ts'
import type { NodeKind } from './tree/checks.ts'
import { createTreeStore, type FilesDatabase, type TreeStore } from './tree/store.ts'

export type Files = ReturnType<typeof createFiles>

export type NodeOfKind = { readonly kind: NodeKind; readonly id: string }

export type FilesDeps = {
  database: FilesDatabase
  storage: Pick<Storage, 'has'>
  settings: CurrentSettings
  limits: Pick<Config['files'], 'perOwnerMax'>
  hooks: FileHooks
  /** The limit of a principal; null: unlimited. */
  storedBytesMax?: (principal: RequestPrincipal) => number | null
  now: () => Date
}

export type TreeDeps = Omit<FilesDeps, 'database'> & { store: TreeStore }

/**
 * Files and folders. Every method acts for a principal; what they may not read is `not_found`, like a
 * node that does not exist. A change requires the role `editor` unless stated otherwise, and throws
 * `permission_denied` for principals who may only read.
 *
 * `ifVersion` is an `If-Match` condition (`precondition_failed`); null: unconditional.
 */
export function createFiles(deps: FilesDeps) {
  const treeDeps: TreeDeps = { ...deps, store: createTreeStore(deps.database) }
  return {
    ...createListing(deps.database, deps),
    ...createAdditions(treeDeps),
    change: changeNode(treeDeps),
    remove: removeNode(treeDeps),
    deleteFile: deleteFile(treeDeps),
    restore: restoreNode(treeDeps),
  }
}
