import type { Config } from '#config/schema.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
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
import { deleteFile, type Removed, removeNode, restoreNode } from './trash/trash.ts'
import { addFile, addFolder, copyOfFile, replaceContent } from './tree/add.ts'
import { changeNode, type NodeChange } from './tree/change.ts'
import type { NodeKind } from './tree/checks.ts'
import { createTreeStore, type FilesDatabase, type TreeStore } from './tree/store.ts'

/**
 * The files and folders. Every question is asked for a caller; what they may not read is answered
 * with `not_found`, as what does not exist is. A change needs the role `editor` unless it says
 * otherwise, and throws `permission_denied` for who may only read.
 *
 * `ifVersion`: the change is made only if it is meant for the version that there is
 * (`precondition_failed`); null: for any.
 */
export type Files = Listing & {
  /**
   * Files a content that the storage has, for the owner of the folder. Throws `conflict` of code
   * `name_conflict`, `unprocessable`, and `service_unavailable` where the content is no longer there.
   */
  create(caller: RequestPrincipal, file: NewFile): Promise<FileView>
  /** What `check` throws is thrown, and nothing is changed. */
  replaceContent(
    caller: RequestPrincipal,
    id: string,
    content: NewContent,
    check: (known: FileView) => void,
  ): Promise<FileView>
  createFolder(
    caller: RequestPrincipal,
    folder: { name: string; folderId: string | null; onConflict: OnConflict },
  ): Promise<FolderView>
  /** Needs only to read the source. */
  copy(
    caller: RequestPrincipal,
    id: string,
    to: { folderId: string | null; name: string | null; onConflict: OnConflict },
  ): Promise<FileView>
  change(caller: RequestPrincipal, node: Which, change: NodeChange): Promise<NodeView>
  /** Into the trash; throws `conflict` of code `folder_not_empty`. */
  remove(
    caller: RequestPrincipal,
    node: Which,
    how: { isRecursive: boolean; ifVersion: IsExpected | null },
  ): Promise<Removed>
  /** For ever; needs the owner. */
  deleteFile(
    caller: RequestPrincipal,
    file: { id: string; ifVersion: IsExpected | null },
  ): Promise<void>
  /** Throws `gone` for what was in the trash for too long. */
  restore(caller: RequestPrincipal, node: Which, how: { onConflict: OnConflict }): Promise<NodeView>
}

type Which = { readonly kind: NodeKind; readonly id: string }

export type FilesDeps = {
  database: FilesDatabase
  storage: Pick<Storage, 'has'>
  settings: Pick<Config['files'], 'perOwnerMax' | 'trashS'>
  hooks: FileHooks
  now: () => Date
}

/** What the parts of the feature that change trees have in common. */
export type TreeDeps = Omit<FilesDeps, 'database'> & { store: TreeStore }

export function createFiles(deps: FilesDeps): Files {
  const { database, ...rest } = deps
  const parts: TreeDeps = { ...rest, store: createTreeStore(database) }
  return {
    ...createListing(database, deps),
    create: (caller, file) => addFile(parts, caller, file),
    replaceContent: (caller, id, content, check) =>
      replaceContent(parts, caller, { id, content, check }),
    createFolder: (caller, folder) => addFolder(parts, caller, folder),
    copy: (caller, id, to) => copyOfFile(parts, caller, id, to),
    change: (caller, node, change) => changeNode(parts, caller, node, change),
    remove: (caller, node, how) => removeNode(parts, caller, node, how),
    deleteFile: (caller, file) => deleteFile(parts, caller, file),
    restore: (caller, node, how) => restoreNode(parts, caller, node, how),
  }
}
