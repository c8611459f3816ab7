import type { Transaction } from '#jobs/jobs.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { StoredContent } from '#storage/storage.ts'

export type Role = 'viewer' | 'editor' | 'manager' | 'owner'

export type Attributes = Readonly<Record<string, string | number | boolean>>

/** A file that the caller may read, as it stands. */
export type FileNode = {
  readonly id: string
  readonly name: string
  /** Null at the top of a tree, and where the caller may not read the folder that it is in. */
  readonly folderId: string | null
  readonly ownerId: string
  readonly createdBy: string
  readonly bytes: number
  readonly mimeType: string
  readonly sha256: string
  readonly attributes: Attributes
  readonly purpose: string
  readonly version: number
  readonly createdAt: Date
  readonly updatedAt: Date
  /** Of the caller. */
  readonly role: Role
}

/** With what stands around it, as its record on the wire shows it. */
export type FileView = FileNode & {
  readonly kind: 'file'
  readonly ownerName: string | null
  /** Whether anything was given to anybody, on it or on a folder above it. */
  readonly isShared: boolean
  readonly expiresAt: Date | null
  /** Over the collections that the caller sees; null where it is in none of them. */
  readonly retrieval: FileRetrieval | null
}

export type FolderView = Pick<
  FileNode,
  'id' | 'name' | 'folderId' | 'ownerId' | 'createdBy' | 'version' | 'createdAt' | 'updatedAt'
> & {
  readonly kind: 'folder'
  readonly role: Role
  readonly ownerName: string | null
  readonly isShared: boolean
  /** Directly in it; of each, no more than a thousand are counted. */
  readonly childCounts: { readonly files: number; readonly folders: number }
}

export type NodeView = FileView | FolderView

export type RetrievalStatus =
  | 'RAG Available'
  | 'Processing'
  | 'Pending'
  | 'Not Supported'
  | 'Failed'

/** The collection in which the file has fared worst decides. */
export type FileRetrieval = {
  readonly status: RetrievalStatus
  /** `waiting`, `parsing`, `splitting`, `embedding`, `indexing`, `completed`, `skipped`, `error`. */
  readonly state: string
  readonly error: { readonly code: string; readonly message: string } | null
  readonly chunks: number
  readonly collections: readonly string[]
}

/** What comes in by an upload. */
export type NewContent = {
  readonly content: StoredContent
  readonly mimeType: string
}

export type NewFile = NewContent & {
  readonly name: string
  readonly folderId: string | null
  readonly attributes: Attributes
  readonly purpose: string
  /** Names of collections that it is put into, in the same transaction. */
  readonly collections: readonly string[]
  readonly expiresAt: Date | null
  readonly onConflict: OnConflict
}

/** What to do where the name is taken: refuse, take another name, or replace that file's content. */
export type OnConflict = 'fail' | 'rename' | 'replace'

/** What has happened to files. At most a thousand at a time are told of. */
export type FileChange = {
  /**
   * `content`: a new file, or new content of one. `moved`: in another folder, perhaps of another
   * owner. `deleted`: for ever; told while its rows are still there.
   */
  readonly kind: 'content' | 'moved' | 'trashed' | 'restored' | 'deleted'
  readonly fileIds: readonly string[]
}

/** Who is told, in the transaction in which it happens; what they throw undoes it. */
export type FileHooks = {
  changed(transaction: Transaction, change: FileChange): Promise<void>
  /** Puts a new file into collections, as far as its caller may; throws an `AppError` where not. */
  joinCollections(
    transaction: Transaction,
    caller: RequestPrincipal,
    fileId: string,
    collections: readonly string[],
  ): Promise<void>
}
