import type { Attributes, Role } from '#files/files.ts'

/** Files that are searched together, as one caller sees them. */
export type Collection = {
  readonly id: string
  /** Unique per owner. */
  readonly name: string
  /** The name given by a client of vector stores. */
  readonly title: string | null
  readonly description: string | null
  /** Stored for clients of vector stores. */
  readonly metadata: Readonly<Record<string, string>>
  readonly ownerId: string
  readonly ownerName: string | null
  readonly accessMode: AccessMode
  /** All files below this folder are members. */
  readonly folderId: string | null
  readonly index: CollectionIndex
  /** Receives new files while a reindex runs. */
  readonly target: CollectionIndex | null
  readonly chunking: Chunking
  readonly counts: FileCounts
  /** Total size of its files. */
  readonly bytes: number
  /** Days without use after which it expires; null: never. */
  readonly expiresAfterDays: number | null
  /** Null: it does not expire. */
  readonly expiresAt: Date | null
  /** It is not searched any more, and loses its files. */
  readonly isExpired: boolean
  readonly lastActiveAt: Date
  readonly createdAt: Date
  readonly updatedAt: Date
  /** The caller's role. */
  readonly role: Role
}

/**
 * `files`: a search finds the files that the caller may read. `collection`: it also finds files that
 * somebody with the right to share them has added; only their passages, not the files, can be read.
 */
export type AccessMode = 'files' | 'collection'

export type Chunking = { readonly tokensMax: number; readonly overlapTokens: number }

export type CollectionIndex = {
  readonly id: number
  readonly model: string
  readonly dims: number
  readonly state: 'building' | 'active' | 'warm' | 'dropping'
}

/** Excludes files in the trash. */
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
  /** The attributes of the file, overridden by those of the membership. */
  readonly attributes: Attributes
  readonly state: MemberState
  /** The current ingest stage; null when idle. */
  readonly stage: string | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly chunks: number
  /** Whether it is a member because of the collection's folder. */
  readonly isFromFolder: boolean
  readonly addedAt: Date
}

export type MemberState = 'pending' | 'done' | 'failed' | 'skipped'

export type NewCollection = {
  readonly name: string
  readonly title: string | null
  readonly description: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly accessMode: AccessMode
  /** Null: the configured default. */
  readonly chunking: Chunking | null
  readonly embeddingModel: string | null
  readonly folderId: string | null
  readonly expiresAfterDays?: number | null
}

/** Absent fields stay unchanged. */
export type CollectionChange = Partial<
  Pick<
    NewCollection,
    'name' | 'title' | 'description' | 'metadata' | 'accessMode' | 'folderId' | 'expiresAfterDays'
  >
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
  /** Only files that one request added together. */
  readonly batchId: string | null
}

/** A collection that a file is in, as managers of the file see it. */
export type FileMembership = {
  readonly collectionId: string
  readonly name: string
  readonly ownerId: string
  readonly ownerName: string | null
  readonly accessMode: AccessMode
  /** The user whose right to share the file opens it. */
  readonly sharedBy: { readonly id: string; readonly name: string | null }
  /** Whether everyone who sees the collection finds the file's passages. */
  readonly isOpen: boolean
  readonly isFromFolder: boolean
  readonly addedAt: Date
}

export type NewMember = { readonly fileId: string; readonly attributes: Attributes | null }
