import type { Transaction } from '#jobs/jobs.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { StoredContent } from '#storage/storage.ts'

/** From the weakest to the strongest. */
const roles = ['viewer', 'editor', 'manager', 'owner'] as const
export type Role = (typeof roles)[number]

/** The database stores roles as numbers: 1 is `viewer`, 4 is `owner`. */
export function roleOfRank(rank: number): Role {
  const role = roles[rank - 1]
  if (role === undefined) throw new Error(`invalid role rank ${rank}`)
  return role
}

export function rankOfRole(role: Role): number {
  return roles.indexOf(role) + 1
}

export function isAtLeast(role: Role, required: Role): boolean {
  return rankOfRole(role) >= rankOfRole(required)
}

export type Attributes = Readonly<Record<string, string | number | boolean>>

type NodeFields = {
  readonly id: string
  readonly name: string
  /** Null at the top level, and if the principal may not read the parent folder. */
  readonly folderId: string | null
  readonly ownerId: string
  readonly ownerName: string | null
  readonly createdBy: string
  readonly version: number
  readonly createdAt: Date
  readonly updatedAt: Date
  /** The role of the principal. */
  readonly role: Role
  /** Whether it or a folder above it is shared. */
  readonly isShared: boolean
}

/** A file that the principal may read. */
export type FileView = NodeFields & {
  readonly kind: 'file'
  readonly bytes: number
  readonly mimeType: string
  readonly sha256: string
  readonly attributes: Attributes
  readonly purpose: string
  readonly expiresAt: Date | null
  /** Over the collections that the principal can see; null: none of them has the file. */
  readonly retrieval: FileRetrieval | null
}

export type FolderView = NodeFields & {
  readonly kind: 'folder'
  /** Direct children, each counted up to 1,000. */
  readonly childCounts: { readonly files: number; readonly folders: number }
}

export type NodeView = FileView | FolderView

export type RetrievalStatus =
  | 'RAG Available'
  | 'Processing'
  | 'Pending'
  | 'Not Supported'
  | 'Failed'

/** The worst state in any collection. */
export type FileRetrieval = {
  readonly status: RetrievalStatus
  /** `waiting`, `parsing`, `splitting`, `embedding`, `indexing`, `completed`, `skipped`, `error`. */
  readonly state: string
  readonly error: { readonly code: string; readonly message: string } | null
  readonly chunks: number
  readonly collections: readonly string[]
}

export type NewContent = {
  readonly content: StoredContent
  readonly mimeType: string
}

export type NewFile = NewContent & {
  readonly name: string
  readonly folderId: string | null
  readonly attributes: Attributes
  readonly purpose: string
  /** Names of collections to add it to, in the same transaction. */
  readonly collections: readonly string[]
  readonly expiresAt: Date | null
  readonly onConflict: OnConflict
}

/** If the name is taken: refuse, add a number, or replace the content of that file. */
export type OnConflict = 'fail' | 'rename' | 'replace'

/** A change of at most `filesPerChangeMax` files. */
export type FileChange = {
  /**
   * `content`: a new file or new content. `moved`: to another folder, perhaps of another owner.
   * `deleted`: permanently; reported while its rows still exist.
   */
  readonly kind: 'content' | 'moved' | 'trashed' | 'restored' | 'deleted'
  readonly fileIds: readonly string[]
}

/** Called inside the transaction of the change; an exception rolls it back. */
export type FileHooks = {
  changed(transaction: Transaction, change: FileChange): Promise<void>
  /** Adds a new file to collections; throws an `AppError` if the principal may not. */
  joinCollections(
    transaction: Transaction,
    principal: RequestPrincipal,
    fileId: string,
    collections: readonly string[],
  ): Promise<void>
}

const filesPerChangeMax = 1_000

/** Calls the hook for the files among the nodes, in batches. */
export async function notifyInBatches(
  { changed }: Pick<FileHooks, 'changed'>,
  transaction: Transaction,
  kind: FileChange['kind'],
  nodes: readonly { id: string; kind: 'file' | 'folder' }[],
): Promise<void> {
  const ids = nodes.filter((node) => node.kind === 'file').map(({ id }) => id)
  for (let start = 0; start < ids.length; start += filesPerChangeMax) {
    await changed(transaction, { kind, fileIds: ids.slice(start, start + filesPerChangeMax) })
  }
}
