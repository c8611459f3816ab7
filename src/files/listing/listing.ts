import { listPage } from '#api/shapes.ts'
import type { FileRecord } from '#files/record.ts'
import type { SortedRecord } from '#files/record-store.ts'
import { nodeNotFound } from '#files/tree/checks.ts'
import type { FilesDatabase } from '#files/tree/store.ts'
import { parseJson } from '#lib/json.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { CurrentSettings } from '#settings/schema.ts'
import type { ChildrenParams, FileListParams, SearchParams } from './schema.ts'
import { highlight, termsOf } from './search-terms.ts'
import { createListingStore } from './store.ts'

/** Read access; see `Files`. */
export function createListing(
  database: FilesDatabase,
  { settings, now }: { settings: CurrentSettings; now: () => Date },
) {
  const store = createListingStore(database)
  const findFolder = async (principal: RequestPrincipal, id: string, param?: string) => {
    const folder = await store.find(principal, id)
    if (folder?.object !== 'folder') throw nodeNotFound('folder', id, param)
    return folder
  }
  const folderOrNull = (principal: RequestPrincipal, id: string | null) =>
    id === null ? null : findFolder(principal, id, 'folder_id')
  return {
    async find(principal: RequestPrincipal, id: string): Promise<FileRecord> {
      const file = await store.find(principal, id)
      if (file?.object !== 'file') throw nodeNotFound('file', id)
      return file
    },
    /** The ids of files outside the trash that the principal may read. */
    async readable(principal: RequestPrincipal, ids: readonly string[]) {
      const readable = await store.readable(principal, ids.filter(isUuid))
      return new Set(ids.filter((id) => readable.has(id.toLowerCase())))
    },
    /** `path`: the readable folders above it, from the top level. */
    async findFolder(principal: RequestPrincipal, id: string) {
      const folder = await findFolder(principal, id)
      return { ...folder, path: await store.path(principal, id) }
    },
    /** Files of all folders, by age. */
    async list(principal: RequestPrincipal, { limit, before, ...params }: FileListParams) {
      const rows = await store.list(principal, { ...params, before, limit: limit + 1 })
      const files = rows.map(({ record }) => record)
      const hasMore = files.length > limit
      // A page before an item ends at that item.
      const data = before !== null && hasMore ? files.slice(1) : files.slice(0, limit)
      const page = listPage(data, hasMore)
      return { ...page, next: hasMore ? page.last_id : null }
    },
    /** Folders before files. */
    async children(principal: RequestPrincipal, params: ChildrenParams) {
      const folder = await folderOrNull(principal, params.folder_id)
      const after = positionOf(params.cursor, params.sort, params.order)
      const rows = await store.children(principal, { ...params, limit: params.limit + 1 }, after)
      return { ...pageOf(rows, params), folder }
    },
    /** By name: nodes whose name contains every term of the query. */
    async search(principal: RequestPrincipal, params: SearchParams) {
      const terms = termsOf(params.query)
      await folderOrNull(principal, params.folder_id)
      const after = positionOf(params.cursor, 'name', 'asc')
      const limit = params.limit + 1
      const rows = await store.search(principal, { ...params, terms, limit }, after)
      const page = pageOf(rows, { limit: params.limit, sort: 'name', order: 'asc' })
      const data = page.data.map((node) => ({
        ...node,
        match: { name: node.name, highlight: highlight(node.name, params.query) },
      }))
      return { ...page, data }
    },
    /** Nodes that the principal has deleted and may restore, newest first. */
    trash(principal: RequestPrincipal, { limit }: { limit: number }) {
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
  rows: readonly SortedRecord[],
  { limit, sort, order }: { limit: number; sort: Sort; order: Order },
) {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const hasMore = rows.length > limit && last !== undefined
  return {
    object: 'list',
    data: shown.map(({ record }) => record),
    has_more: hasMore,
    next: hasMore ? serializeCursor(sort, order, last) : null,
  }
}

export type Sort = ChildrenParams['sort']

export type Order = ChildrenParams['order']

/** The item before a page. Unlike an offset, it is stable while items are added and deleted. */
export type PagePosition = {
  readonly kind: 'file' | 'folder'
  readonly sortKey: string
  readonly id: string
}

const cursorCharsMax = 2_000
const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/

/** Opaque to clients; the content is neither secret nor trusted. */
function serializeCursor(sort: Sort, order: Order, { record, sortKey }: SortedRecord): string {
  const position = [sort, order, record.object, sortKey, record.id]
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

/** Throws a 422 for a malformed cursor, or one of another sort or order. */
function parseCursor(text: string, sort: Sort, order: Order): PagePosition {
  const parts =
    text.length > cursorCharsMax ? null : parseJson(Buffer.from(text, 'base64url').toString())
  if (Array.isArray(parts) && parts[0] === sort && parts[1] === order) {
    const [, , kind, sortKey, id] = parts
    const isNode = (kind === 'file' || kind === 'folder') && typeof id === 'string' && isUuid(id)
    if (isNode && typeof sortKey === 'string' && isSortKey(sort, sortKey))
      return { kind, sortKey, id }
  }
  const sentence = '"cursor" must be the "next" of a page of this list.'
  throw refused('cursor', sentence, 'invalid_cursor')
}

function isSortKey(sort: Sort, key: string): boolean {
  switch (sort) {
    case 'name':
      return key.isWellFormed() && !key.includes('\0')
    case 'bytes':
      return /^\d{1,18}$/.test(key)
    default:
      return instant.test(key) && !Number.isNaN(Date.parse(key))
  }
}
