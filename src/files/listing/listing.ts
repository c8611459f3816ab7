import type { FileView, FolderView, NodeView, RetrievalStatus } from '#files/files.ts'
import { nodeNotFound } from '#files/tree/checks.ts'
import type { FilesDatabase } from '#files/tree/store.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import { type Order, type PagePosition, parseCursor, type Sort, serializeCursor } from './cursor.ts'
import { termsOf } from './search-terms.ts'
import { createListingStore } from './store.ts'

/** The principal's own files, files shared with them, or both. */
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
  /** Null: the top level of the principal's tree and of everything shared with them. */
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
  /** Searches all levels below this folder. */
  readonly folderId: string | null
  readonly scope: Scope
  /** `text/plain`, or a whole type: `image/*`. */
  readonly mimeType: string | null
  readonly retrievalStatus: RetrievalStatus | null
  readonly limit: number
  readonly cursor: string | null
}

type Page<T> = {
  readonly items: readonly T[]
  readonly hasMore: boolean
  /** The cursor of the next page. */
  readonly next: string | null
}

export type PathFolder = { readonly id: string; readonly name: string }

/** Read access; see `Files`. */
export type Listing = {
  find(principal: RequestPrincipal, id: string): Promise<FileView>
  /** The ids of files outside the trash that the principal may read. */
  readable(principal: RequestPrincipal, ids: readonly string[]): Promise<ReadonlySet<string>>
  /** `path`: the readable folders above it, from the top level. */
  findFolder(
    principal: RequestPrincipal,
    id: string,
  ): Promise<{ folder: FolderView; path: readonly PathFolder[] }>
  /** Files of all folders, by age. */
  list(principal: RequestPrincipal, params: ListParams): Promise<Page<FileView>>
  /** Folders before files. */
  children(
    principal: RequestPrincipal,
    params: ChildrenParams,
  ): Promise<Page<NodeView> & { folder: FolderView | null }>
  /** By name: nodes whose name contains every term of the query. */
  search(principal: RequestPrincipal, params: SearchParams): Promise<Page<NodeView>>
  /** Nodes that the principal has deleted and may restore, newest first. */
  trash(principal: RequestPrincipal, page: { limit: number }): Promise<readonly TrashedItem[]>
}

export type TrashedItem = {
  readonly id: string
  readonly kind: 'file' | 'folder'
  readonly name: string
  readonly trashedAt: Date
}

export function createListing(
  database: FilesDatabase,
  { settings, now }: { settings: CurrentSettings; now: () => Date },
): Listing {
  const store = createListingStore(database)
  const findFolder = async (principal: RequestPrincipal, id: string, param?: string) => {
    const view = await store.view(principal, id)
    if (view?.kind !== 'folder') throw nodeNotFound('folder', id, param)
    return view
  }
  const folderOrNull = (principal: RequestPrincipal, id: string | null) =>
    id === null ? null : findFolder(principal, id, 'folder_id')
  return {
    async find(principal, id) {
      const view = await store.view(principal, id)
      if (view?.kind !== 'file') throw nodeNotFound('file', id)
      return view
    },
    async readable(principal, ids) {
      const readable = await store.readable(principal, ids.filter(isUuid))
      return new Set(ids.filter((id) => readable.has(id.toLowerCase())))
    },
    async findFolder(principal, id) {
      const folder = await findFolder(principal, id)
      return { folder, path: await store.path(principal, id) }
    },
    async list(principal, { limit, before, ...params }) {
      const rows = await store.list(principal, { ...params, before, limit: limit + 1 })
      const files = rows.flatMap(({ view }) => (view.kind === 'file' ? [view] : []))
      const hasMore = files.length > limit
      // A page before an item ends at that item.
      const items = before !== null && hasMore ? files.slice(1) : files.slice(0, limit)
      return { items, hasMore, next: hasMore ? (items.at(-1)?.id ?? null) : null }
    },
    async children(principal, params) {
      const folder = await folderOrNull(principal, params.folderId)
      const after = positionOf(params.cursor, params.sort, params.order)
      const rows = await store.children(principal, { ...params, limit: params.limit + 1 }, after)
      return { ...pageOf(rows, params), folder }
    },
    async search(principal, params) {
      const terms = termsOf(params.query)
      await folderOrNull(principal, params.folderId)
      const after = positionOf(params.cursor, 'name', 'asc')
      const limit = params.limit + 1
      const rows = await store.search(principal, { ...params, terms, limit }, after)
      return pageOf(rows, { limit: params.limit, sort: 'name', order: 'asc' })
    },
    trash(principal, { limit }) {
      const retentionMs = settings.current().files.trash_seconds * 1_000
      const since = new Date(now().getTime() - retentionMs)
      return store.trash(principal, { limit, since })
    },
  }
}

function positionOf(cursor: string | null, sort: Sort, order: Order): PagePosition | null {
  return cursor === null ? null : parseCursor(cursor, sort, order)
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
    next: hasMore ? serializeCursor(sort, order, { ...last.view, sortKey: last.sortKey }) : null,
  }
}
