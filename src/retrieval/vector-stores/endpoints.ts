import { withNulls } from '#api/described.ts'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { deletedResponse, idExample, listPage, pageResponse } from '#api/shapes.ts'
import { AppError } from '#lib/errors.ts'
import { foldText } from '#lib/fold-text.ts'
import { newId } from '#lib/id.ts'
import { actingPrincipal, type RequestContext } from '#lib/request-context.ts'
import type { Collection } from '#retrieval/collections/collections.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import { isCollectionName, orderedPageQuery, pageRequestOf } from '#retrieval/collections/schema.ts'
import { renderSearch, searchExample, searchPage } from '#retrieval/search/record.ts'
import type { Search } from '#retrieval/search/search.ts'
import { fileEndpoints } from './file-endpoints.ts'
import { withModelErrors } from './model-errors.ts'
import { renderStore, type VectorStore, vectorStore } from './record.ts'
import {
  type NewStore,
  newStoreBody,
  readNewStore,
  readStoreChange,
  readStoreSearch,
  storeChangeBody,
  storeSearchBody,
} from './schema.ts'

/** Collections in the protocol of vector stores. */
export function vectorStoreEndpoints({
  collections,
  search,
}: {
  collections: Collections
  search: Search
}): Endpoint[] {
  const endpoints = [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/vector_stores',
      summary: 'Create a vector store',
      description:
        'Creates a collection whose name is derived from the title. Unknown fields are ignored.',
      body: jsonBody(withNulls(newStoreBody), {
        isOptional: true,
        example: { name: 'Support FAQ', metadata: { team: 'support' } },
        read: readNewStore,
      }),
      responses: { 200: storeResponse },
      errors: {
        invalid_request: [
          invalidMetadata,
          {
            code: 'too_many_collections',
            message: 'You have 1000 collections, which is the limit; delete one first.',
          },
        ],
        not_found: `There is no file with the id "${idExample}".`,
      },
      handle: async ({ body = readNewStore(), context }) =>
        renderStore(await createStore(collections, context, body)),
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/vector_stores',
      summary: 'List the vector stores that you may search',
      query: orderedPageQuery,
      responses: {
        200: pageResponse('A page of stores.', vectorStore, storeExample),
      },
      errors: { invalid_request: '"limit" must be a whole number from 1 to 100.' },
      async handle({ query, context }) {
        const page = await collections.list(context.principal, pageRequestOf(query))
        return listPage(page.items.map(renderStore), page.hasMore)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/vector_stores/:id',
      summary: 'Retrieve a vector store',
      params: idParam,
      responses: { 200: storeResponse },
      errors: { not_found: storeNotFound },
      handle: async ({ params: { id }, context }) =>
        renderStore(await collections.find(context.principal, id)),
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/vector_stores/:id',
      summary: 'Update a vector store',
      description:
        'Absent fields stay unchanged; `metadata` of null is removed. Needs the role manager.',
      params: idParam,
      body: jsonBody(withNulls(storeChangeBody), {
        example: { name: 'Support answers' },
        read: readStoreChange,
      }),
      responses: { 200: storeResponse },
      errors: {
        not_found: storeNotFound,
        permission_denied: 'This needs the role manager on the collection; yours is editor.',
        invalid_request: invalidMetadata,
      },
      handle: async ({ params: { id }, body, context }) =>
        renderStore(await collections.update(actingPrincipal(context), id, body)),
    }),

    endpoint({
      ...common,
      method: 'DELETE',
      path: '/v1/vector_stores/:id',
      summary: 'Delete a vector store',
      description: 'The files are kept. Only the owner may delete it.',
      params: idParam,
      responses: {
        200: deletedResponse('The store was deleted.', 'vector_store.deleted', idExample),
      },
      errors: {
        not_found: storeNotFound,
        permission_denied: 'This needs the role owner on the collection; yours is manager.',
        conflict: {
          code: 'collection_in_use',
          message:
            'Agents search the collection "support-faq"; change them first, or send force=true.',
        },
      },
      async handle({ params: { id }, context }) {
        const removed = await collections.remove(actingPrincipal(context), id, { isForced: false })
        return { id: removed.id, object: 'vector_store.deleted', deleted: true }
      },
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/vector_stores/:id/search',
      summary: 'Search a vector store',
      description: 'Like the search of a collection. The results of several texts are merged.',
      params: idParam,
      body: jsonBody(withNulls(storeSearchBody), {
        example: {
          query: 'How long is the warranty?',
          filters: { type: 'eq', key: 'language', value: 'en' },
          max_num_results: 5,
        },
        read: readStoreSearch,
      }),
      responses: { 200: { description: 'Passages.', content: json(searchPage, searchExample) } },
      errors: {
        not_found: storeNotFound,
        invalid_request: [
          { code: 'vector_store_expired', message: 'The vector store "support-faq" has expired.' },
          { code: 'query_empty', message: '"query" must not be empty.' },
          {
            code: 'unknown_operator',
            message: '"filters.type" must be "eq", "in", "and" or "or".',
          },
          {
            code: 'filter_type_mismatch',
            message: '"filters.value" must be a text, a number or a boolean.',
          },
        ],
        service_unavailable: { code: 'index_unavailable', message: 'The search timed out.' },
      },
      async handle({ params: { id }, body, context }) {
        const response = await search(context, { ...body, collections: [id] })
        return renderSearch(response, body.queries)
      },
    }),

    ...fileEndpoints(collections),
  ]
  return endpoints.map(withModelErrors)
}

/** Creates a collection with a name derived from the title. */
async function createStore(
  collections: Collections,
  context: RequestContext,
  { title, description, metadata, fileIds, chunking, expiresAfterDays }: NewStore,
): Promise<Collection> {
  const caller = actingPrincipal(context)
  const params = {
    title,
    description,
    metadata,
    chunking,
    expiresAfterDays,
    accessMode: 'files' as const,
    embeddingModel: null,
    folderId: null,
  }
  const store = await createNamed(title, (name) => collections.create(context, { ...params, name }))
  if (fileIds.length === 0) return store
  try {
    const files = fileIds.map((fileId) => ({ fileId, attributes: null }))
    await collections.members.add(caller, store.id, files, null)
  } catch (error) {
    await collections.remove(caller, store.id, { isForced: true })
    throw error
  }
  return collections.find(caller, store.id)
}

/** Titles may repeat; the names of an owner's collections are unique. */
async function createNamed(
  title: string | null,
  create: (name: string) => Promise<Collection>,
): Promise<Collection> {
  const stem = foldText(title ?? '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, stemCharsMax)
  const uniqueName = newId(stem === '' ? 'vs_' : `${stem}-`).slice(0, stemCharsMax + 8)
  if (!isCollectionName(stem)) return create(uniqueName)
  try {
    return await create(stem)
  } catch (error) {
    if (!(error instanceof AppError) || error.wireCode !== 'name_conflict') throw error
    return create(uniqueName)
  }
}

/** Leaves space for a random suffix in the name. */
const stemCharsMax = 40

const common = { permission: 'can_access_api', tag: 'Vector stores' } as const

const idParam = { id: 'The id of the store, or the name of its collection.' }

const storeExample: VectorStore = {
  id: idExample,
  object: 'vector_store',
  created_at: 1_795_253_400,
  name: 'Support FAQ',
  collection: 'support-faq',
  description: null,
  usage_bytes: 183_220,
  file_counts: { in_progress: 0, completed: 12, failed: 0, cancelled: 0, total: 12 },
  status: 'completed',
  expires_after: { anchor: 'last_active_at', days: 30 },
  expires_at: 1_797_845_400,
  last_active_at: 1_795_253_400,
  metadata: { team: 'support' },
}
const storeResponse = { description: 'The store.', content: json(vectorStore, storeExample) }

const storeNotFound = 'There is no collection "support-faq".'
const invalidMetadata =
  '"metadata" must be an object of at most 16 texts of 512 characters, with keys of 64.'
