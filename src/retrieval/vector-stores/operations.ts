import { withNulls } from '#api/described.ts'
import { deleted, idExample, listExample, listOf } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { orderedPageQuery } from '#retrieval/collections/schema.ts'
import { searchExample, searchPage } from '#retrieval/search/answer-schema.ts'
import { type VectorStore, vectorStore } from './answer-schema.ts'
import { newStoreBody, storeChangeBody, storeSearchBody } from './schema.ts'

const tag = 'Vector stores'
const path = { id: 'The id of the store, or the name of its collection.' }

const store: VectorStore = {
  id: idExample,
  object: 'vector_store',
  created_at: 1_795_253_400,
  name: 'Support FAQ',
  collection: 'support-faq',
  description: null,
  usage_bytes: 183_220,
  file_counts: { in_progress: 0, completed: 12, failed: 0, cancelled: 0, total: 12 },
  status: 'completed',
  expires_at: null,
  last_active_at: 1_795_253_400,
  metadata: { team: 'support' },
}

export const absentStore = 'There is no collection "support-faq".'
export const badPage = '"limit" must be a whole number from 1 to 100.'
const noManager = 'This needs the role manager on the collection; yours is editor.'
const badMetadata =
  '"metadata" must be an object of at most 16 texts of 512 characters, with keys of 64.'
const noExpiry = 'A vector store does not expire; delete it when it is not needed.'
const one = { 200: { description: 'The store.', content: json(vectorStore, store) } }

export const storeOperations = {
  create: operation({
    tag,
    summary: 'Create a vector store',
    description:
      'A collection by any title, from which its name is made. Fields that are not known are left alone.',
    body: {
      isOptional: true,
      content: json(withNulls(newStoreBody), {
        name: 'Support FAQ',
        metadata: { team: 'support' },
      }),
    },
    answers: one,
    errors: {
      invalid_request: [
        badMetadata,
        noExpiry,
        {
          code: 'too_many_collections',
          message: 'You have 1000 collections, which is the limit; delete one first.',
        },
      ],
      not_found: `There is no file with the id "${idExample}".`,
    },
  }),
  list: operation({
    tag,
    summary: 'List the vector stores that you may search',
    query: orderedPageQuery,
    answers: {
      200: {
        description: 'A page of stores.',
        content: json(listOf(vectorStore), listExample(store)),
      },
    },
    errors: { invalid_request: badPage },
  }),
  find: operation({
    tag,
    summary: 'Show a vector store',
    path,
    answers: one,
    errors: { not_found: absentStore },
  }),
  change: operation({
    tag,
    summary: 'Change a vector store',
    description:
      'What is not named stays as it is; `metadata` that is null is taken away. Needs the role manager.',
    path,
    body: { content: json(withNulls(storeChangeBody), { name: 'Support answers' }) },
    answers: one,
    errors: {
      not_found: absentStore,
      permission_denied: noManager,
      invalid_request: [badMetadata, noExpiry],
    },
  }),
  remove: operation({
    tag,
    summary: 'Delete a vector store',
    description: 'Its files stay. Only its owner may.',
    path,
    answers: {
      200: {
        description: 'It is gone.',
        content: json(deleted('vector_store.deleted'), {
          id: idExample,
          object: 'vector_store.deleted',
          deleted: true,
        }),
      },
    },
    errors: {
      not_found: absentStore,
      permission_denied: 'This needs the role owner on the collection; yours is manager.',
      conflict: {
        code: 'collection_in_use',
        message:
          'Agents search the collection "support-faq"; change them first, or send force=true.',
      },
    },
  }),
  search: operation({
    tag,
    summary: 'Search a vector store',
    description: 'See the search of a collection. Several texts are asked together.',
    path,
    body: {
      content: json(withNulls(storeSearchBody), {
        query: 'How long is the warranty?',
        filters: { type: 'eq', key: 'language', value: 'en' },
        max_num_results: 5,
      }),
    },
    answers: { 200: { description: 'Passages.', content: json(searchPage, searchExample) } },
    errors: {
      not_found: absentStore,
      invalid_request: [
        { code: 'query_empty', message: '"query" must not be empty.' },
        {
          code: 'unknown_operator',
          message:
            '"filters.type" must be "eq", "in", "and" or "or"; others cannot be searched by.',
        },
        {
          code: 'filter_type_mismatch',
          message: '"filters.value" must be a text, a number or a boolean.',
        },
      ],
      service_unavailable: {
        code: 'index_unavailable',
        message: 'The search takes too long.',
      },
    },
  }),
}
