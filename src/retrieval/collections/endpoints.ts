import { Type } from '@sinclair/typebox'
import { withNulls } from '#api/described.ts'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { idExample, instantExample, listPage, pageResponse } from '#api/shapes.ts'
import { shareEndpoints } from '#files/shares/endpoints.ts'
import type { Shares } from '#files/shares/shares.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import type { Collections } from './create-collections.ts'
import { memberEndpoints } from './member-endpoints.ts'
import { collectionRecord, renderCollection } from './record.ts'
import {
  ambiguousName,
  collectionChangeBody,
  forceQuery,
  newCollectionBody,
  orderedPageQuery,
  pageRequestOf,
  readCollectionChange,
  readNewCollection,
  referenceHint,
} from './schema.ts'

/** The shares of collections. */
export function collectionShareEndpoints({
  collections,
  shares,
}: {
  collections: Pick<Collections, 'find'>
  shares: Shares
}): Endpoint[] {
  return shareEndpoints(
    { shares },
    {
      resource: 'collections',
      async find(principal, reference) {
        const { id, ownerId, role } = await collections.find(principal, reference)
        return { type: 'collection', id, ownerId, role }
      },
    },
  )
}

/** Managing collections and their members. */
export function collectionEndpoints({ collections }: { collections: Collections }): Endpoint[] {
  return [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/collections',
      summary: 'Create a collection',
      description:
        'The caller becomes its owner; one user may own 1,000. Names are unique per owner. The embedding model is called once to measure its vectors.',
      body: jsonBody(withNulls(newCollectionBody), {
        example: {
          name: 'handbooks',
          description: 'Product manuals',
          chunking: { max_tokens: 512, overlap_tokens: 64 },
        },
        read: readNewCollection,
      }),
      responses: {
        201: { ...collectionResponse, description: 'The new collection.' },
      },
      errors: {
        unprocessable: [
          invalidName,
          { code: 'model_not_found', message: 'The model "embed-large" does not exist.' },
          {
            code: 'model_mode_mismatch',
            message: 'The model "demo" has mode generate; mode embed is required.',
          },
          {
            code: 'too_many_dimensions',
            message: 'The vectors of "embed-large" have 20000 dimensions; the maximum is 16000.',
          },
          {
            code: 'too_many_collections',
            message: 'You have 1000 collections, which is the limit; delete one first.',
          },
        ],
        unknown_field: '"colour" is not a known field.',
        conflict: nameTaken,
        not_found: `There is no folder with the id "${idExample}".`,
        permission_denied: notSharable('the folder'),
        upstream_unreachable: 'The upstream could not be reached.',
      },
      handle: async ({ body, context }) =>
        renderCollection(await collections.create(context, body)),
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/collections',
      summary: 'List the collections that you may search',
      query: orderedPageQuery,
      responses: {
        200: pageResponse('A page of collections.', collectionRecord, collectionExample),
      },
      errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
      async handle({ query, context }) {
        const page = await collections.list(context.principal, pageRequestOf(query))
        return listPage(page.items.map(renderCollection), page.hasMore)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/collections/:id',
      summary: 'Retrieve a collection',
      params: idParam,
      responses: { 200: collectionResponse },
      errors: { not_found: collectionNotFound, unprocessable: ambiguousName },
      handle: async ({ params: { id }, context }) =>
        renderCollection(await collections.find(context.principal, id)),
    }),

    endpoint({
      ...common,
      method: 'PATCH',
      path: '/v1/collections/:id',
      summary: 'Update a collection',
      description:
        'Absent fields stay unchanged; a `description` or `folder_id` of null is removed. Needs the role manager; a new `name` needs the role owner.',
      params: idParam,
      body: jsonBody(withNulls(collectionChangeBody), {
        example: { access_mode: 'collection' },
        read: readCollectionChange,
      }),
      responses: { 200: collectionResponse },
      errors: {
        unprocessable: [invalidName, ambiguousName],
        unknown_field: '"chunking" is not a known field.',
        not_found: collectionNotFound,
        permission_denied: [
          'This needs the role manager on the collection; yours is editor.',
          notSharable('every file in the collection'),
        ],
        conflict: nameTaken,
      },
      handle: async ({ params: { id }, body, context }) =>
        renderCollection(await collections.update(actingPrincipal(context), id, body)),
    }),

    endpoint({
      ...common,
      method: 'DELETE',
      path: '/v1/collections/:id',
      summary: 'Delete a collection',
      description: 'The files are kept. Only the owner may delete it.',
      params: idParam,
      query: forceQuery,
      responses: {
        200: {
          description: 'The collection was deleted.',
          content: json(collectionDeleted, {
            id: idExample,
            name: 'handbooks',
            object: 'collection.deleted',
            deleted: true,
          }),
        },
      },
      errors: {
        not_found: collectionNotFound,
        permission_denied: 'This needs the role owner on the collection; yours is manager.',
        conflict: usedByAgents,
        unprocessable: ['"force" must be true or false.', ambiguousName],
      },
      async handle({ params: { id }, query: { force: isForced }, context }) {
        const removed = await collections.remove(actingPrincipal(context), id, { isForced })
        return { id: removed.id, name: removed.name, object: 'collection.deleted', deleted: true }
      },
    }),

    ...memberEndpoints(collections),
  ]
}

const common = { permission: 'can_access_api', tag: 'Collections' } as const
const idParam = { id: referenceHint }

const collectionExample = {
  id: idExample,
  object: 'collection',
  name: 'handbooks',
  description: 'Product manuals',
  access_mode: 'files',
  owner: { id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a62', name: 'Ann' },
  my_role: 'owner',
  folder_id: null,
  index: { id: '1', embedding_model: 'local-hash', dims: 384, state: 'active' },
  target_index: null,
  file_counts: { total: 12, completed: 11, in_progress: 1, failed: 0 },
  chunking: { max_tokens: 512, overlap_tokens: 64 },
  created_at: instantExample,
  updated_at: instantExample,
}
const collectionResponse = {
  description: 'The collection.',
  content: json(collectionRecord, collectionExample),
}
const collectionDeleted = Type.Object({
  id: Type.String(),
  object: Type.Literal('collection.deleted'),
  deleted: Type.Literal(true),
  name: Type.String(),
})

const collectionNotFound = 'There is no collection "handbooks".'
const invalidName = {
  code: 'invalid_name',
  message:
    '"name" must be 1 to 63 small letters, digits, "_" or "-", beginning with a letter or digit, and no UUID.',
}
const nameTaken = {
  code: 'name_conflict',
  message: 'You have a collection "handbooks" already.',
}
const usedByAgents = {
  code: 'collection_in_use',
  message: 'Agents search the collection "handbooks"; change them first, or send force=true.',
}

function notSharable(what: string): string {
  return `Everyone who sees this collection finds its files, so this needs the role manager on ${what}.`
}
