import { withNulls } from '#api/described.ts'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { idExample, listPage, pageResponse } from '#api/shapes.ts'
import { AppError } from '#lib/errors.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import { fileIdExample, removalEndpoint } from '#retrieval/collections/member-endpoints.ts'
import { pageRequestOf } from '#retrieval/collections/schema.ts'
import {
  type FileBatch,
  fileBatch,
  renderBatch,
  renderStoreFile,
  type StoreFile,
  storeFile,
} from './record.ts'
import {
  batchBody,
  fileAttributesBody,
  readBatch,
  readFileAttributes,
  readStoreMember,
  requireChunking,
  statesOf,
  storeFilesQuery,
  storeMemberBody,
} from './schema.ts'

/** The files of vector stores, alone and in batches. */
export function fileEndpoints(collections: Collections): Endpoint[] {
  const { members } = collections

  const listEndpoint = (declared: {
    path: string
    summary: string
    description?: string
    params: typeof idParam | typeof batchParams
    notFound: readonly string[]
  }) =>
    endpoint({
      ...common,
      ...declared,
      method: 'GET',
      query: storeFilesQuery,
      responses: { 200: pageResponse('A page of files.', storeFile, fileExample) },
      errors: { not_found: declared.notFound, invalid_request: invalidFilesQuery },
      async handle({ params, query: { filter, ...query }, context: { principal } }) {
        const store = await collections.find(principal, params.id)
        const batchId = 'batchId' in params ? requireBatchId(params.batchId) : null
        const { items, hasMore } = await members.list(principal, store.id, {
          page: pageRequestOf(query),
          filter: { states: statesOf(filter), batchId },
        })
        return listPage(
          items.map((member) => renderStoreFile(member, store)),
          hasMore,
        )
      },
    })

  return [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/vector_stores/:id/files',
      summary: 'Add a file to a vector store',
      description: 'The file is processed after the response. Needs the role editor.',
      params: idParam,
      body: jsonBody(withNulls(storeMemberBody), {
        example: { file_id: fileIdExample, attributes: { language: 'en' } },
        read: readStoreMember,
      }),
      responses: { 200: fileResponse },
      errors: {
        not_found: [storeNotFound, fileNotFound],
        permission_denied: notEditor,
        invalid_request: ['"file_id" is required.', otherChunking, storeFull],
      },
      async handle({ params: { id }, body, context }) {
        const principal = actingPrincipal(context)
        const store = await collections.find(principal, id)
        requireChunking([body], store.chunking)
        const [member] = await members.add(principal, store.id, [body], null)
        return member && renderStoreFile(member, store)
      },
    }),

    listEndpoint({
      path: '/v1/vector_stores/:id/files',
      summary: 'List the files of a vector store',
      description: 'Only files that the caller may read.',
      params: idParam,
      notFound: [storeNotFound],
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/vector_stores/:id/files/:fileId',
      summary: 'Retrieve a file of a vector store',
      params: fileParams,
      responses: { 200: fileResponse },
      errors: { not_found: [storeNotFound, fileNotFound] },
      async handle({ params: { id, fileId }, context: { principal } }) {
        const store = await collections.find(principal, id)
        return renderStoreFile(await members.find(principal, store.id, fileId), store)
      },
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/vector_stores/:id/files/:fileId',
      summary: 'Set the attributes of a file in a vector store',
      description: 'Replaces its attributes in this store. Needs the role editor.',
      params: fileParams,
      body: jsonBody(withNulls(fileAttributesBody), {
        example: { attributes: { language: 'de' } },
        read: readFileAttributes,
      }),
      responses: { 200: fileResponse },
      errors: {
        not_found: [storeNotFound, fileNotFound],
        permission_denied: notEditor,
        invalid_request: '"attributes" must have at most 16 keys.',
      },
      async handle({ params: { id, fileId }, body, context }) {
        const principal = actingPrincipal(context)
        const store = await collections.find(principal, id)
        const member = await members.setAttributes(principal, store.id, fileId, () => body)
        return renderStoreFile(member, store)
      },
    }),

    removalEndpoint(members, {
      ...common,
      path: '/v1/vector_stores/:id/files/:fileId',
      params: fileParams,
      noun: 'vector store',
      object: 'vector_store.file.deleted',
      collectionNotFound: storeNotFound,
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/vector_stores/:id/file_batches',
      summary: 'Add files to a vector store',
      description:
        'Adds up to 500 files, all or none: `file_ids` with common fields, `files` with their own. Needs the role editor.',
      params: idParam,
      body: jsonBody(withNulls(batchBody), {
        example: { file_ids: [fileIdExample] },
        read: readBatch,
      }),
      responses: { 200: batchResponse },
      errors: {
        not_found: [storeNotFound, fileNotFound],
        permission_denied: notEditor,
        invalid_request: ['"file_ids" must name files.', otherChunking, storeFull],
      },
      async handle({ params: { id }, body: files, context }) {
        const principal = actingPrincipal(context)
        const store = await collections.find(principal, id)
        requireChunking(files, store.chunking)
        const batchId = Bun.randomUUIDv7()
        await members.add(principal, store.id, files, batchId)
        const counts = await members.count(principal, store.id, { states: null, batchId })
        return renderBatch(batchId, store, counts)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/vector_stores/:id/file_batches/:batchId',
      summary: 'Retrieve the progress of a batch',
      params: batchParams,
      responses: { 200: batchResponse },
      errors: { not_found: [storeNotFound, batchNotFound] },
      async handle({ params: { id, batchId }, context: { principal } }) {
        const store = await collections.find(principal, id)
        const filter = { states: null, batchId: requireBatchId(batchId) }
        const counts = await members.count(principal, store.id, filter)
        if (counts.total === 0) throw noSuchBatch(batchId)
        return renderBatch(batchId, store, counts)
      },
    }),

    listEndpoint({
      path: '/v1/vector_stores/:id/file_batches/:batchId/files',
      summary: 'List the files of a batch',
      params: batchParams,
      notFound: [storeNotFound, batchNotFound],
    }),
  ]
}

function requireBatchId(batchId: string): string {
  if (isUuid(batchId)) return batchId
  throw noSuchBatch(batchId)
}

function noSuchBatch(batchId: string): AppError {
  return new AppError('not_found', `There is no batch of files with the id "${batchId}".`)
}

const common = { permission: 'can_access_api', tag: 'Vector stores' } as const
const batchIdExample = '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a64'
const idParam = { id: 'The id of the store, or the name of its collection.' }
const fileParams = { ...idParam, fileId: 'The id of the file.' }
const batchParams = { ...idParam, batchId: 'The id of the batch.' }

const fileExample: StoreFile = {
  id: fileIdExample,
  object: 'vector_store.file',
  created_at: 1_795_253_400,
  vector_store_id: idExample,
  status: 'completed',
  usage_bytes: 183_220,
  last_error: null,
  attributes: { language: 'en' },
  chunking_strategy: {
    type: 'static',
    static: { max_chunk_size_tokens: 800, chunk_overlap_tokens: 100 },
  },
}
const batchExample: FileBatch = {
  id: batchIdExample,
  object: 'vector_store.files_batch',
  created_at: 1_795_253_400,
  vector_store_id: idExample,
  status: 'in_progress',
  file_counts: { in_progress: 2, completed: 0, failed: 0, cancelled: 0, total: 2 },
}
const fileResponse = { description: 'The file.', content: json(storeFile, fileExample) }
const batchResponse = { description: 'The batch.', content: json(fileBatch, batchExample) }

const storeNotFound = 'There is no collection "support-faq".'
const fileNotFound = `There is no file with the id "${fileIdExample}".`
const batchNotFound = `There is no batch of files with the id "${batchIdExample}".`
const notEditor = 'This needs the role editor on the collection; yours is viewer.'
const otherChunking = 'All files of a vector store have the chunking of the store.'
const storeFull = {
  code: 'collection_full',
  message: 'The collection "support-faq" has 1000000 files, which is the limit.',
}
const invalidFilesQuery = [
  '"limit" must be a whole number from 1 to 100.',
  '"filter" must be "in_progress" or "completed" or "failed" or "cancelled".',
]
