import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { renderFile, renderFolder, renderNode } from '#files/render.ts'
import type { Files } from '#files/tree.ts'
import { readJsonBody } from '#http/body.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { ChildList, FileList, FoundList, TrashList } from './answer-schema.ts'
import { highlight } from './highlight.ts'
import { listingOperations } from './operations.ts'
import { fromQuery, readChildrenAsk, readListAsk, readSearchAsk, readTrashAsk } from './schema.ts'

export type ListingRoutesDeps = {
  auth: Auth
  files: Files
  config: Pick<Config, 'limits'>
}

/** Lists of files and folders. Children and search are asked for by a query or by a body. */
export function listingRoutes({ auth, files, config: { limits } }: ListingRoutesDeps) {
  const children = (caller: RequestPrincipal, given: unknown) =>
    answerChildren(files, caller, given)
  const search = (caller: RequestPrincipal, given: unknown) => answerSearch(files, caller, given)
  return new Elysia({ name: 'file-lists', prefix: '/v1/files' })
    .use(guard(auth))
    .get('/', ({ principal, query }) => answerList(files, principal, query), {
      requires: 'can_access_api',
      detail: listingOperations.list,
    })
    .get('/children', ({ principal, query }) => children(principal, fromQuery(query)), {
      requires: 'can_access_api',
      detail: listingOperations.children,
    })
    .post(
      '/children',
      async ({ principal, request }) => children(principal, await readJsonBody(request, limits)),
      { requires: 'can_access_api', parse: 'none', detail: listingOperations.postChildren },
    )
    .get('/search', ({ principal, query }) => search(principal, fromQuery(query)), {
      requires: 'can_access_api',
      detail: listingOperations.search,
    })
    .post(
      '/search',
      async ({ principal, request }) => search(principal, await readJsonBody(request, limits)),
      { requires: 'can_access_api', parse: 'none', detail: listingOperations.postSearch },
    )
    .get('/trash', ({ principal, query }) => answerTrash(files, principal, query), {
      requires: 'can_access_api',
      detail: listingOperations.trash,
    })
}

async function answerList(
  files: Files,
  caller: RequestPrincipal,
  query: unknown,
): Promise<FileList> {
  const { items, hasMore, next } = await files.list(caller, readListAsk(query))
  return {
    object: 'list',
    data: items.map(renderFile),
    has_more: hasMore,
    first_id: items[0]?.id ?? null,
    last_id: items.at(-1)?.id ?? null,
    next,
  }
}

async function answerChildren(
  files: Files,
  caller: RequestPrincipal,
  given: unknown,
): Promise<ChildList> {
  const { folder, items, hasMore, next } = await files.children(caller, readChildrenAsk(given))
  return {
    object: 'list',
    folder: folder === null ? null : renderFolder(folder),
    data: items.map(renderNode),
    has_more: hasMore,
    next,
  }
}

async function answerSearch(
  files: Files,
  caller: RequestPrincipal,
  given: unknown,
): Promise<FoundList> {
  const ask = readSearchAsk(given)
  const { items, hasMore, next } = await files.search(caller, ask)
  return {
    object: 'list',
    data: items.map((node) => ({
      ...renderNode(node),
      match: { name: node.name, highlight: [...highlight(node.name, ask.query)] },
    })),
    has_more: hasMore,
    next,
  }
}

async function answerTrash(
  files: Files,
  caller: RequestPrincipal,
  query: unknown,
): Promise<TrashList> {
  const items = await files.trash(caller, readTrashAsk(query))
  const data = items.map(({ id, kind, name, trashedAt }) => ({
    id,
    object: kind,
    name,
    trashed_at: trashedAt.toISOString(),
  }))
  return { object: 'list', data }
}
