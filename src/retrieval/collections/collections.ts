import type { Attributes, FileHooks, Role } from '#files/files.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'

/** Files that are searched together. Every question about one is asked for somebody. */
export type Collection = {
  readonly id: string
  /** What agents and callers name it by; another one for each collection. */
  readonly name: string
  /** What a client of vector stores called it. */
  readonly title: string | null
  readonly description: string | null
  /** What a client of vector stores keeps with it. */
  readonly metadata: Readonly<Record<string, string>>
  readonly ownerId: string
  readonly ownerName: string | null
  readonly accessMode: AccessMode
  /** Everything in this folder is in the collection. */
  readonly folderId: string | null
  readonly index: CollectionIndex
  /** While a reindex runs, where new files go. */
  readonly target: CollectionIndex | null
  readonly chunking: Chunking
  readonly counts: FileCounts
  /** Of its files. */
  readonly bytes: number
  readonly createdAt: Date
  readonly updatedAt: Date
  /** Of the caller. */
  readonly role: Role
}

/**
 * `files`: whoever may read a file finds it. `collection`: whoever sees the collection finds all that
 * is in it, as passages; the files themselves they may still not read.
 */
export type AccessMode = 'files' | 'collection'

export type Chunking = { readonly tokensMax: number; readonly overlapTokens: number }

export type CollectionIndex = {
  readonly id: number
  readonly model: string
  readonly dims: number
  readonly state: 'building' | 'active' | 'warm' | 'dropping'
}

/** Without what is in the trash. */
export type FileCounts = {
  readonly total: number
  readonly completed: number
  readonly inProgress: number
  readonly failed: number
}

/** A file as a member of a collection. */
export type Member = {
  readonly fileId: string
  readonly filename: string
  readonly bytes: number
  /** Those of the file, with those of this membership over them. */
  readonly attributes: Attributes
  readonly state: MemberState
  /** What is being done with it; null when nothing is. */
  readonly stage: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly chunks: number
  /** Whether it is here since it is in the collection's folder. */
  readonly isFollowed: boolean
  readonly addedAt: Date
}

export type MemberState = 'pending' | 'done' | 'failed' | 'skipped'

export type NewCollection = {
  readonly name: string
  readonly title: string | null
  readonly description: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly accessMode: AccessMode
  /** Null: as configured. */
  readonly chunking: Chunking | null
  readonly embeddingModel: string | null
  readonly folderId: string | null
}

/** What is absent stays as it is. */
export type CollectionChange = Partial<
  Pick<NewCollection, 'name' | 'title' | 'description' | 'metadata' | 'accessMode' | 'folderId'>
>

export type PageRequest = {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  readonly after: string | null
  readonly before: string | null
}

export type Page<T> = { readonly items: readonly T[]; readonly hasMore: boolean }

export type MemberFilter = {
  readonly states: readonly MemberState[] | null
  /** Only those that one request added together. */
  readonly batchId: string | null
}

/**
 * The collections. `named` is a name or an id; one that the caller does not see is `not_found`, as
 * one that does not exist is. Who sees it may search; who is an editor of it adds and removes files;
 * a manager changes it, and its owner deletes it: what is less throws `permission_denied`.
 */
export type Collections = {
  /** Throws `conflict` of code `name_conflict`, `unprocessable`, and what the model throws. */
  create(caller: RequestPrincipal, wish: NewCollection): Promise<Collection>
  find(caller: RequestPrincipal, named: string): Promise<Collection>
  list(caller: RequestPrincipal, page: PageRequest): Promise<Page<Collection>>
  /** All that the caller sees, by name: those that can be searched, and named in an agent. */
  visible(caller: RequestPrincipal): Promise<readonly { id: string; name: string }[]>
  /**
   * `isForced`: even if agents name it. Throws `conflict` of code `collection_in_use` where a name
   * would go that agents have, and `permission_denied` where files would be opened to people that
   * the caller may not share them with.
   */
  update(
    caller: RequestPrincipal,
    named: string,
    change: CollectionChange,
    how: { isForced: boolean },
  ): Promise<Collection>
  remove(caller: RequestPrincipal, named: string, how: { isForced: boolean }): Promise<Collection>
  readonly members: CollectionMembers
  /** The memberships of one file, for those who may share it. */
  readonly fileMemberships: FileMemberships
  /** For the files: what happens to them happens to their memberships. */
  readonly fileHooks: FileHooks
}

/** A collection that a file is in, as those who may share the file see it. */
export type FileMembership = {
  readonly collectionId: string
  readonly name: string
  readonly ownerId: string
  readonly ownerName: string | null
  readonly accessMode: AccessMode
  /** Whose right to share the file opens it. */
  readonly sharedBy: { readonly id: string; readonly name: string | null }
  /** Whether everyone who sees the collection finds the file's passages. */
  readonly isOpen: boolean
  readonly isFollowed: boolean
  readonly addedAt: Date
}

/**
 * Both need the role `manager` on the file, and no role on the collection. Throw `not_found` for a
 * file that the caller may not read, and `permission_denied` for one that they may not share.
 */
export type FileMemberships = {
  /** The first 1,000, by the id of the collection. */
  list(caller: RequestPrincipal, fileId: string): Promise<Page<FileMembership>>
  /** A file that a collection follows stays out of it until it is added by itself. */
  remove(caller: RequestPrincipal, fileId: string, collectionId: string): Promise<void>
}

/** Files that the caller may not read are no members to them, unless the collection says otherwise. */
export type CollectionMembers = {
  /**
   * Those that are there already keep their place. Throws `not_found` for a file that the caller may
   * not read, and `permission_denied` for one that they would open to people that they may not share
   * it with.
   */
  add(
    caller: RequestPrincipal,
    named: string,
    files: readonly NewMember[],
    batchId: string | null,
  ): Promise<readonly Member[]>
  list(
    caller: RequestPrincipal,
    named: string,
    asked: { page: PageRequest; filter: MemberFilter },
  ): Promise<Page<Member>>
  count(caller: RequestPrincipal, named: string, filter: MemberFilter): Promise<FileCounts>
  find(caller: RequestPrincipal, named: string, fileId: string): Promise<Member>
  /** `change` is told the attributes of the membership alone. */
  setAttributes(
    caller: RequestPrincipal,
    named: string,
    fileId: string,
    change: (own: Attributes) => Attributes,
  ): Promise<Member>
  /** Throws `conflict` of code `file_followed` for one that is there by its folder. */
  remove(caller: RequestPrincipal, named: string, fileId: string): Promise<void>
}

export type NewMember = { readonly fileId: string; readonly attributes: Attributes | null }
