import type { Transaction } from '#db/client.ts'
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
  /** From its creation; null: does not expire. */
  readonly lifetimeS: number | null
  readonly onConflict: OnConflict
}

/**
 * If the name is taken: refuse, add a number, replace the content of that file, or allow files of equal
 * names.
 */
export type OnConflict = 'fail' | 'rename' | 'replace' | 'allow'

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
