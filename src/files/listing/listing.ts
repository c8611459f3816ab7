import type { FileView, FolderView, NodeView, RetrievalStatus } from '#files/files.ts'
import { nameKey } from '#files/names.ts'
import { nodeNotFound } from '#files/tree/checks.ts'
import type { FilesDatabase } from '#files/tree/store.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import { type Order, type PagePosition, readCursor, type Sort, writeCursor } from './cursor.ts'
import { createListingStore } from './store.ts'

/** Whose: the caller's own, what others have given them, or both. */
export type Scope = 'mine' | 'shared_with_me' | 'all'

export type ListParams = {
  readonly after: string | null
  readonly before: string | null
  readonly limit: number
  readonly order: Order
  readonly scope: Scope
  readonly purpose: string | null
}

export type ChildrenParams = {
  /** Null: what is at the top of the caller's tree, and of what was given to them. */
  readonly folderId: string | null
  readonly scope: Scope
  readonly type: 'all' | 'file' | 'folder'
  readonly sort: Sort
  readonly order: Order
  readonly limit: number
  readonly cursor: string | null
}

export type SearchParams = {
  readonly query: string
  /** Anywhere below it. */
  readonly folderId: string | null
  readonly scope: Scope
  /** `text/plain`, or all of a kind: `image/*`. */
  readonly mimeType: string | null
  readonly retrievalStatus: RetrievalStatus | null
  readonly limit: number
  readonly cursor: string | null
}

type Page<T> = {
  readonly items: readonly T[]
  readonly hasMore: boolean
  /** The cursor of the page behind this one. */
  readonly next: string | null
}

export type PathFolder = { readonly id: string; readonly name: string }

/** What can be read without changing anything; see `Files`. */
export type Listing = {
  find(caller: RequestPrincipal, id: string): Promise<FileView>
  /** Those of these ids that are files which the caller may read, and which are not in the trash. */
  readable(caller: RequestPrincipal, ids: readonly string[]): Promise<ReadonlySet<string>>
  /** `path`: the folders above it, from the top, as far as the caller may read them. */
  findFolder(
    caller: RequestPrincipal,
    id: string,
  ): Promise<{ folder: FolderView; path: readonly PathFolder[] }>
  /** All files in all folders, by age. */
  list(caller: RequestPrincipal, ask: ListParams): Promise<Page<FileView>>
  /** Folders before files. */
  children(
    caller: RequestPrincipal,
    ask: ChildrenParams,
  ): Promise<Page<NodeView> & { folder: FolderView | null }>
  /** By name: what has every word of the query in its name. */
  search(caller: RequestPrincipal, ask: SearchParams): Promise<Page<NodeView>>
  /** What the caller has deleted and may restore, the latest first. */
  trash(caller: RequestPrincipal, ask: { limit: number }): Promise<readonly TrashedItem[]>
}

export type TrashedItem = {
  readonly id: string
  readonly kind: 'file' | 'folder'
  readonly name: string
  readonly trashedAt: Date
}

/** A longer query asks the database the same as one of so many words. */
const wordsMax = 16

export function createListing(
  database: FilesDatabase,
  { settings, now }: { settings: { trashS: number }; now: () => Date },
): Listing {
  const store = createListingStore(database)
  const folder = async (caller: RequestPrincipal, id: string, param?: string) => {
    const found = await store.view(caller, id)
    if (found?.kind !== 'folder') throw nodeNotFound('folder', id, param)
    return found
  }
  const folderOrNull = (caller: RequestPrincipal, id: string | null) =>
    id === null ? null : folder(caller, id, 'folder_id')
  return {
    async find(caller, id) {
      const found = await store.view(caller, id)
      if (found?.kind !== 'file') throw nodeNotFound('file', id)
      return found
    },
    async readable(caller, ids) {
      const found = await store.readable(caller, ids.filter(isUuid))
      return new Set(ids.filter((id) => found.has(id.toLowerCase())))
    },
    async findFolder(caller, id) {
      const found = await folder(caller, id)
      return { folder: found, path: await store.path(caller, id) }
    },
    async list(caller, ask) {
      const rows = await store.list(caller, { ...ask, limit: ask.limit + 1 })
      const items = rows.flatMap(({ view }) => (view.kind === 'file' ? [view] : []))
      const shown = items.slice(0, ask.limit)
      const hasMore = items.length > ask.limit
      // Asked for what comes before an item, the page is the one that ends at it.
      if (ask.before !== null && hasMore) shown.splice(0, ask.limit, ...items.slice(1))
      return { items: shown, hasMore, next: hasMore ? (shown.at(-1)?.id ?? null) : null }
    },
    async children(caller, ask) {
      const inside = await folderOrNull(caller, ask.folderId)
      const behind = positionOf(ask.cursor, ask.sort, ask.order)
      const rows = await store.children(caller, { ...ask, limit: ask.limit + 1 }, behind)
      return { ...pageOf(rows, ask), folder: inside }
    },
    async search(caller, ask) {
      const words = wordsOf(ask.query)
      await folderOrNull(caller, ask.folderId)
      const behind = positionOf(ask.cursor, 'name', 'asc')
      const rows = await store.search(caller, { ...ask, words, limit: ask.limit + 1 }, behind)
      return pageOf(rows, { limit: ask.limit, sort: 'name', order: 'asc' })
    },
    trash(caller, { limit }) {
      const since = new Date(now().getTime() - settings.trashS * 1_000)
      return store.trash(caller, { limit, since })
    },
  }
}

/** Throws a 422 for a query in which nothing can be seen. */
export function wordsOf(query: string): readonly string[] {
  const words = nameKey(query)
    .split(/\s+/)
    .filter((word) => word !== '')
  if (words.length > 0) return [...new Set(words)].slice(0, wordsMax)
  throw new AppError('unprocessable', '"query" must not be empty.', {
    param: 'query',
    code: 'query_empty',
  })
}

function positionOf(cursor: string | null, sort: Sort, order: Order): PagePosition | null {
  return cursor === null ? null : readCursor(cursor, sort, order)
}

function pageOf(
  rows: readonly { view: NodeView; sortKey: string }[],
  { limit, sort, order }: { limit: number; sort: Sort; order: Order },
): Page<NodeView> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const hasMore = rows.length > limit && last !== undefined
  return {
    items: shown.map(({ view }) => view),
    hasMore,
    next: hasMore ? writeCursor(sort, order, { ...last.view, sortKey: last.sortKey }) : null,
  }
}
