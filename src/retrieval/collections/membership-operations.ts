import { deleted, idExample, instantExample, listExample, listOf } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { type MembershipRecord, membershipRecord } from './answer-schema.ts'

const tag = 'Collections'

const membership: MembershipRecord = {
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
const noFile = `There is no file with the id "${idExample}".`
const noSharer = 'This needs the role manager on the file.'

export const membershipOperations = {
  list: operation({
    tag,
    summary: 'List the collections that a file is in',
    description:
      'Every one, including those that the caller does not see. Needs the role manager on the file. At most 1,000.',
    path: { id: 'The id of the file.' },
    answers: {
      200: {
        description: 'The collections, by id.',
        content: json(listOf(membershipRecord), listExample(membership)),
      },
    },
    errors: { not_found: noFile, permission_denied: noSharer },
  }),
  remove: operation({
    tag,
    summary: 'Remove a file from a collection as a manager of the file',
    description:
      'Needs the role manager on the file and no role on the collection. A file that is there by the folder of the collection stays out of it until it is added by itself.',
    path: { id: 'The id of the file.', collection_id: 'The id of the collection.' },
    answers: {
      200: {
        description: 'The file was removed from the collection.',
        content: json(deleted('file.collection.deleted'), {
          id: idExample,
          object: 'file.collection.deleted',
          deleted: true,
        }),
      },
    },
    errors: {
      not_found: [noFile, `There is no collection "${idExample}".`],
      permission_denied: noSharer,
    },
  }),
}
