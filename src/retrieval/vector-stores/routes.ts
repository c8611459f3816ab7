import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { AppError } from '#lib/errors.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Collections, Member, Page } from '#retrieval/collections/collections.ts'
import { renderPage } from '#retrieval/collections/render.ts'
import { readPage } from '#retrieval/collections/schema.ts'
import { renderSearch } from '#retrieval/search/render.ts'
import type { Search } from '#retrieval/search/search.ts'
import { createStore } from './create-store.ts'
import { batchOperations, storeFileOperations } from './file-operations.ts'
import { asModelApi } from './model-errors.ts'
import { storeOperations } from './operations.ts'
import { renderBatch, renderStore, renderStoreFile } from './render.ts'
import {
  readBatch,
  readNewStore,
  readOwnAttributes,
  readStates,
  readStoreChange,
  readStoreMember,
  readStoreSearch,
} from './schema.ts'

export type VectorStoreRoutesDeps = {
  auth: Auth
  collections: Collections
  search: Search
  config: Pick<Config, 'limits'>
}

/** Collections as the clients of vector stores know them, by id or name. */
export function vectorStoreRoutes(deps: VectorStoreRoutesDeps) {
  const { auth, collections, search, config } = deps
  const read = (request: Request) => readJsonBody(request, config.limits)
  return new Elysia({ name: 'vector-stores', prefix: '/v1/vector_stores' })
    .use(guard(auth))
    .post(
      '/',
      ({ principal, request }) =>
        asModelApi(async () => {
          const wish = readNewStore(request.body === null ? {} : await read(request))
          return renderStore(await createStore(collections, principal, wish))
        }),
      { requires: basePermission, parse: 'none', detail: storeOperations.create },
    )
    .get(
      '/',
      ({ principal, query }) =>
        asModelApi(async () =>
          renderPage(await collections.list(principal, readPage(query)), renderStore, idOf),
        ),
      { requires: basePermission, detail: storeOperations.list },
    )
    .get(
      '/:id',
      async ({ principal, params: { id } }) => renderStore(await collections.find(principal, id)),
      { requires: basePermission, detail: storeOperations.find },
    )
    .post(
      '/:id',
      ({ principal, params: { id }, request }) =>
        asModelApi(async () => {
          const change = readStoreChange(await read(request))
          return renderStore(await collections.update(principal, id, change, { isForced: false }))
        }),
      { requires: basePermission, parse: 'none', detail: storeOperations.change },
    )
    .delete(
      '/:id',
      async ({ principal, params: { id } }) => {
        const removed = await collections.remove(principal, id, { isForced: false })
        return { id: removed.id, object: 'vector_store.deleted', deleted: true }
      },
      { requires: basePermission, detail: storeOperations.remove },
    )
    .post(
      '/:id/search',
      ({ principal, params: { id }, request }) =>
        asModelApi(async () => {
          const asked = readStoreSearch(await read(request), id)
          return renderSearch(await search(principal, asked, request.signal), asked.queries)
        }),
      { requires: basePermission, parse: 'none', detail: storeOperations.search },
    )
    .use(storeFileRoutes(deps))
    .use(batchRoutes(deps))
}

function storeFileRoutes({ auth, collections, config }: VectorStoreRoutesDeps) {
  const { members } = collections
  return new Elysia({ name: 'vector-store-files', prefix: '/:id/files' })
    .use(guard(auth))
    .post(
      '/',
      ({ principal, params: { id }, request }) =>
        asModelApi(async () => {
          const store = await collections.find(principal, id)
          const body = await readJsonBody(request, config.limits)
          const added = [readStoreMember(body, store.chunking)]
          const found = await members.add(principal, store.id, added, null)
          return found.map((member) => renderStoreFile(member, store))[0]
        }),
      { requires: basePermission, parse: 'none', detail: storeFileOperations.add },
    )
    .get(
      '/',
      ({ principal, params: { id }, query }) =>
        asModelApi(async () => {
          const store = await collections.find(principal, id)
          const filter = { states: readStates(query['filter']), batchId: null }
          const page = await members.list(principal, store.id, { page: readPage(query), filter })
          return renderPage(page, (member) => renderStoreFile(member, store), fileIdOf)
        }),
      { requires: basePermission, detail: storeFileOperations.list },
    )
    .get(
      '/:fileId',
      async ({ principal, params: { id, fileId } }) => {
        const store = await collections.find(principal, id)
        return renderStoreFile(await members.find(principal, store.id, fileId), store)
      },
      { requires: basePermission, detail: storeFileOperations.find },
    )
    .post(
      '/:fileId',
      ({ principal, params: { id, fileId }, request }) =>
        asModelApi(async () => {
          const store = await collections.find(principal, id)
          const own = readOwnAttributes(await readJsonBody(request, config.limits))
          const changed = await members.setAttributes(principal, store.id, fileId, () => own)
          return renderStoreFile(changed, store)
        }),
      { requires: basePermission, parse: 'none', detail: storeFileOperations.change },
    )
    .delete(
      '/:fileId',
      async ({ principal, params: { id, fileId } }) => {
        await members.remove(principal, id, fileId)
        return { id: fileId, object: 'vector_store.file.deleted', deleted: true }
      },
      { requires: basePermission, detail: storeFileOperations.remove },
    )
}

function batchRoutes({ auth, collections, config }: VectorStoreRoutesDeps) {
  const { members } = collections
  const all = (batchId: string) => ({ states: null, batchId })
  return new Elysia({ name: 'vector-store-batches', prefix: '/:id/file_batches' })
    .use(guard(auth))
    .post(
      '/',
      ({ principal, params: { id }, request }) =>
        asModelApi(async () => {
          const store = await collections.find(principal, id)
          const files = readBatch(await readJsonBody(request, config.limits), store.chunking)
          const batchId = Bun.randomUUIDv7()
          await members.add(principal, store.id, files, batchId)
          const counts = await members.count(principal, store.id, all(batchId))
          return renderBatch(batchId, store, counts)
        }),
      { requires: basePermission, parse: 'none', detail: batchOperations.add },
    )
    .get(
      '/:batchId',
      async ({ principal, params: { id, batchId } }) => {
        const store = await collections.find(principal, id)
        const counts = await members.count(principal, store.id, all(knownId(batchId)))
        if (counts.total === 0) throw absentBatch(batchId)
        return renderBatch(batchId, store, counts)
      },
      { requires: basePermission, detail: batchOperations.find },
    )
    .get(
      '/:batchId/files',
      ({ principal, params: { id, batchId }, query }) =>
        asModelApi(async () => {
          const store = await collections.find(principal, id)
          const filter = { states: readStates(query['filter']), batchId: knownId(batchId) }
          const asked = { page: readPage(query), filter }
          const page: Page<Member> = await members.list(principal, store.id, asked)
          return renderPage(page, (member) => renderStoreFile(member, store), fileIdOf)
        }),
      { requires: basePermission, detail: batchOperations.list },
    )
}

function idOf({ id }: { id: string }): string {
  return id
}

function fileIdOf({ fileId }: Member): string {
  return fileId
}

function knownId(batchId: string): string {
  if (isUuid(batchId)) return batchId
  throw absentBatch(batchId)
}

function absentBatch(batchId: string): AppError {
  return new AppError('not_found', `There is no batch of files with the id "${batchId}".`)
}
