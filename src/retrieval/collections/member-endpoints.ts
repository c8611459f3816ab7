import { withNulls } from '#api/described.ts'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import {
  deletedResponse,
  idExample,
  instantExample,
  listOf,
  listPage,
  pageResponse,
} from '#api/shapes.ts'
import { mergeAttributes } from '#files/attributes.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import type { Collections } from './create-collections.ts'
import {
  filePage,
  type MemberRecord,
  type MembershipRecord,
  memberRecord,
  membershipRecord,
  renderMember,
  renderMembership,
} from './record.ts'
import {
  attributesChangeBody,
  newMemberBody,
  orderedPageQuery,
  pageRequestOf,
  readAttributesChange,
  readNewMember,
  referenceHint,
} from './schema.ts'

/** The files of a collection, and the collections of a file. */
export function memberEndpoints({ members, fileMemberships }: Collections): Endpoint[] {
  return [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/collections/:id/files',
      summary: 'Add a file to a collection',
      description:
        'The file is processed after the response. A file that is a member already stays one, with the attributes of this request. Needs the role editor.',
      params: idParam,
      body: jsonBody(withNulls(newMemberBody), {
        example: { file_id: fileIdExample, attributes: { language: 'en' } },
        read: readNewMember,
      }),
      responses: {
        202: { description: 'The new member.', content: json(memberRecord, memberExample) },
      },
      errors: {
        not_found: [collectionNotFound, fileNotFound],
        permission_denied: [
          notEditor,
          'Everyone who sees this collection finds its files, so this needs the role manager on the file.',
        ],
        unprocessable: [
          '"file_id" is required.',
          {
            code: 'collection_full',
            message: 'The collection "handbooks" has 1000000 files, which is the limit.',
          },
        ],
        unknown_field: '"colour" is not a known field.',
      },
      async handle({ params: { id }, body, context }) {
        const [member] = await members.add(actingPrincipal(context), id, [body], null)
        return member === undefined ? {} : renderMember(member)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/collections/:id/files',
      summary: 'List the files of a collection',
      description:
        'Files that the caller may read. With `access_mode: "collection"` also those added by a user who may share them.',
      params: idParam,
      query: orderedPageQuery,
      responses: {
        200: {
          description: 'A page of members, by file id.',
          content: json(listOf(memberRecord), filePage([memberExample], false)),
        },
      },
      errors: {
        not_found: collectionNotFound,
        unprocessable: '"limit" must be a whole number from 1 to 100.',
      },
      async handle({ params: { id }, query, context }) {
        const filter = { states: null, batchId: null }
        const params = { page: pageRequestOf(query), filter }
        const { items, hasMore } = await members.list(context.principal, id, params)
        return filePage(items.map(renderMember), hasMore)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/collections/:id/files/:fileId',
      summary: 'Retrieve a file of a collection',
      params: memberParams,
      responses: { 200: memberResponse },
      errors: { not_found: [collectionNotFound, fileNotFound] },
      handle: async ({ params: { id, fileId }, context }) =>
        renderMember(await members.find(context.principal, id, fileId)),
    }),

    endpoint({
      ...common,
      method: 'PATCH',
      path: '/v1/collections/:id/files/:fileId',
      summary: 'Update the attributes of a file in a collection',
      description: 'Needs the role editor.',
      params: memberParams,
      body: jsonBody(attributesChangeBody, {
        example: { attributes: { language: 'de', draft: null } },
        read: readAttributesChange,
      }),
      responses: { 200: memberResponse },
      errors: {
        not_found: [collectionNotFound, fileNotFound],
        permission_denied: notEditor,
        unprocessable: ['"attributes" is required.', '"attributes" must have at most 16 keys.'],
      },
      handle: async ({ params: { id, fileId }, body, context }) =>
        renderMember(
          await members.setAttributes(actingPrincipal(context), id, fileId, (own) =>
            mergeAttributes(own, body),
          ),
        ),
    }),

    removalEndpoint(members, {
      ...common,
      path: '/v1/collections/:id/files/:fileId',
      params: memberParams,
      noun: 'collection',
      object: 'collection.file.deleted',
      collectionNotFound,
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/files/:id/collections',
      summary: 'List the collections that a file is in',
      description:
        'All of them, including those that the caller does not see; at most 1,000. Needs the role manager on the file.',
      params: { id: 'The id of the file.' },
      responses: {
        200: pageResponse('The collections, by id.', membershipRecord, membershipExample),
      },
      errors: { not_found: ownFileNotFound, permission_denied: notFileManager },
      async handle({ params: { id }, context }) {
        const page = await fileMemberships.list(context.principal, id)
        return listPage(page.items.map(renderMembership), page.hasMore)
      },
    }),

    endpoint({
      ...common,
      method: 'DELETE',
      path: '/v1/files/:id/collections/:collection_id',
      summary: 'Remove a file from a collection as a manager of the file',
      description:
        'Needs the role manager on the file and no role on the collection. A member because of the folder of the collection stays out until it is added directly.',
      params: { id: 'The id of the file.', collection_id: 'The id of the collection.' },
      responses: {
        200: deletedResponse(
          'The file was removed from the collection.',
          'file.collection.deleted',
          idExample,
        ),
      },
      errors: {
        not_found: [ownFileNotFound, `There is no collection "${idExample}".`],
        permission_denied: notFileManager,
      },
      async handle({ params: { id, collection_id: collectionId }, context }) {
        await fileMemberships.remove(actingPrincipal(context), id, collectionId)
        return { id: collectionId, object: 'file.collection.deleted', deleted: true }
      },
    }),
  ]
}

/** The removal of a file from a collection; collections and vector stores share it. */
export function removalEndpoint(
  members: Collections['members'],
  declared: {
    path: string
    permission: 'can_access_api'
    tag: Endpoint['tag']
    params: typeof memberParams
    noun: 'collection' | 'vector store'
    object: string
    collectionNotFound: string
  },
): Endpoint {
  const { noun, object, collectionNotFound: notFound, ...common } = declared
  const removed = `The file was removed from the ${noun === 'collection' ? noun : 'store'}.`
  return endpoint({
    ...common,
    method: 'DELETE',
    summary: `Remove a file from a ${noun}`,
    description: 'The file itself is kept. Needs the role editor.',
    responses: { 200: deletedResponse(removed, object, fileIdExample) },
    errors: {
      not_found: [notFound, fileNotFound],
      permission_denied: notEditor,
      conflict: {
        code: 'file_followed',
        message:
          "This file is a member because of the collection's folder; move the file, or change the folder.",
      },
    },
    async handle({ params: { id, fileId }, context }) {
      await members.remove(actingPrincipal(context), id, fileId)
      return { id: fileId, object, deleted: true }
    },
  })
}

const common = { permission: 'can_access_api', tag: 'Collections' } as const
export const fileIdExample = '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61'
const idParam = { id: referenceHint }
const memberParams = { ...idParam, fileId: 'The id of the file.' }

const memberExample: MemberRecord = {
  file_id: fileIdExample,
  object: 'collection.file',
  filename: 'handbook.pdf',
  bytes: 183_220,
  status: 'in_progress',
  stage: 'embedding',
  error: null,
  chunks: 0,
  attributes: { language: 'en' },
  followed: false,
  added_at: instantExample,
}
const memberResponse = { description: 'The file.', content: json(memberRecord, memberExample) }
const membershipExample: MembershipRecord = {
  id: idExample,
  object: 'file.collection',
  name: 'handbooks',
  owner: { id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a62', name: 'ann' },
  access_mode: 'collection',
  shared_by: { id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a63', name: 'bob' },
  open: true,
  followed: false,
  added_at: instantExample,
}

const collectionNotFound = 'There is no collection "handbooks".'
const fileNotFound = `There is no file with the id "${fileIdExample}".`
const ownFileNotFound = `There is no file with the id "${idExample}".`
const notEditor = 'This needs the role editor on the collection; yours is viewer.'
const notFileManager = 'This needs the role manager on the file.'
