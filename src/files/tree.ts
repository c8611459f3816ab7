import type { Config } from '#config/schema.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import type { Storage } from '#storage/storage.ts'
import type {
  FileHooks,
  FileView,
  FolderView,
  NewContent,
  NewFile,
  NodeView,
  OnConflict,
} from './files.ts'
import { createListing, type Listing } from './listing/listing.ts'
import { deleteFile, removeNode, restoreNode } from './trash/trash.ts'
import { createAdditions } from './tree/add.ts'
import { changeNode, type NodeChange } from './tree/change.ts'
import type { NodeKind } from './tree/checks.ts'
import { createTreeStore, type FilesDatabase, type TreeStore } from './tree/store.ts'

/**
 * Files and folders. Every method acts for a principal; what they may not read is `not_found`, like a
 * node that does not exist. A change requires the role `editor` unless stated otherwise, and throws
 * `permission_denied` for principals who may only read.
 *
 * `ifVersion` is an `If-Match` condition (`precondition_failed`); null: unconditional.
 */
export type Files = Listing & {
  /**
   * Creates a file from stored content, owned by the owner of the folder. Throws `conflict` of code
   * `name_conflict`, `unprocessable`, and `service_unavailable` if the content is no longer stored.
   */
  create(principal: RequestPrincipal, file: NewFile): Promise<FileView>
  /** Changes nothing and rethrows if `check` throws. */
  replaceContent(
    principal: RequestPrincipal,
    id: string,
    content: NewContent,
    check: (current: FileView) => void,
  ): Promise<FileView>
  createFolder(
    principal: RequestPrincipal,
    folder: { name: string; folderId: string | null; onConflict: OnConflict },
  ): Promise<FolderView>
  /** Requires read access to the source. */
  copy(
    principal: RequestPrincipal,
    id: string,
    to: { folderId: string | null; name: string | null; onConflict: OnConflict },
  ): Promise<FileView>
  change(principal: RequestPrincipal, node: NodeOfKind, change: NodeChange): Promise<NodeView>
  /** Moves a node to the trash and counts the trashed nodes. Throws `folder_not_empty`. */
  remove(
    principal: RequestPrincipal,
    node: NodeOfKind,
    options: { isRecursive: boolean; ifVersion: IsExpected | null },
  ): Promise<{ files: number; folders: number }>
  /** Deletes a file permanently; requires the owner. */
  deleteFile(
    principal: RequestPrincipal,
    file: { id: string; ifVersion: IsExpected | null },
  ): Promise<void>
  /** Throws `gone` after the retention time of the trash. */
  restore(
    principal: RequestPrincipal,
    node: NodeOfKind,
    options: { onConflict: OnConflict },
  ): Promise<NodeView>
}

type NodeOfKind = { readonly kind: NodeKind; readonly id: string }

export type FilesDeps = {
  database: FilesDatabase
  storage: Pick<Storage, 'has'>
  settings: CurrentSettings
  limits: Pick<Config['files'], 'perOwnerMax'>
  hooks: FileHooks
  now: () => Date
}

export type TreeDeps = Omit<FilesDeps, 'database'> & { store: TreeStore }

export function createFiles(deps: FilesDeps): Files {
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
