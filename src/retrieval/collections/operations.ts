import { withNulls } from '#api/described.ts'
import { deleted, idExample, instantExample, listExample, listOf } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import {
  type CollectionRecord,
  collectionRecord,
  deletedCollection,
  type MemberRecord,
  memberRecord,
} from './answer-schema.ts'
import {
  attributesChangeBody,
  collectionChangeBody,
  forceQuery,
  newCollectionBody,
  newMemberBody,
  orderedPageQuery,
} from './schema.ts'

const tag = 'Collections'
const fileIdExample = '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61'
const path = { id: 'The name of the collection, or its id.' }
const memberPath = { ...path, fileId: 'The id of the file.' }

const collection: CollectionRecord = {
  id: idExample,
  object: 'collection',
  name: 'handbooks',
  description: 'What we sell, and how it is mended',
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
const member: MemberRecord = {
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

const absent = 'There is no collection "handbooks".'
const absentFile = `There is no file with the id "${fileIdExample}".`
const noEditor = 'This needs the role editor on the collection; yours is viewer.'
const noManager = 'This needs the role manager on the collection; yours is editor.'
const mayNotShare =
  'Everybody who sees this collection finds what is in it, so this needs the role manager on the file.'
const badName =
  '"name" must be 1 to 63 small letters, digits, "_" or "-", beginning with a letter or digit, and no UUID.'
const nameTaken = {
  code: 'name_conflict',
  message: 'There is a collection "handbooks" already.',
}
const inUse = {
  code: 'collection_in_use',
  message: 'Agents search the collection "handbooks"; change them first, or send force=true.',
}
const badPage = '"limit" must be a whole number from 1 to 100.'
const one = { 200: { description: 'The collection.', content: json(collectionRecord, collection) } }
const oneFile = { 200: { description: 'The file.', content: json(memberRecord, member) } }

export const collectionOperations = {
  create: operation({
    tag,
    summary: 'Create a collection',
    description:
      'Its owner is the caller, who may have 1,000 of them. The embedding model is asked for one vector, which says how long they are.',
    body: {
      content: json(withNulls(newCollectionBody), {
        name: 'handbooks',
        description: 'What we sell, and how it is mended',
        chunking: { max_tokens: 512, overlap_tokens: 64 },
      }),
    },
    answers: { 201: { description: 'It is made.', content: json(collectionRecord, collection) } },
    errors: {
      unprocessable: [
        { code: 'invalid_name', message: badName },
        { code: 'model_not_found', message: 'The model "embed-large" does not exist.' },
        {
          code: 'model_mode_mismatch',
          message: 'The model "demo" is of mode generate; one of mode embed is needed.',
        },
        {
          code: 'too_many_dimensions',
          message: 'The vectors of "embed-large" have 20000 numbers; at most 16000 can be kept.',
        },
        {
          code: 'too_many_collections',
          message: 'You have 1000 collections, which is the limit; delete one first.',
        },
      ],
      unknown_field: '"colour" is not a known field.',
      conflict: nameTaken,
      not_found: `There is no folder with the id "${idExample}".`,
      permission_denied: mayNotShare.replace('the file', 'the folder'),
      upstream_unreachable: 'The upstream could not be reached.',
    },
  }),
  list: operation({
    tag,
    summary: 'List the collections that you may search',
    query: orderedPageQuery,
    answers: {
      200: {
        description: 'A page of collections.',
        content: json(listOf(collectionRecord), listExample(collection)),
      },
    },
    errors: { unprocessable: badPage },
  }),
  find: operation({
    tag,
    summary: 'Show a collection',
    path,
    answers: one,
    errors: { not_found: absent },
  }),
  change: operation({
    tag,
    summary: 'Change a collection',
    description:
      'What is not named stays as it is; a `description` or `folder_id` that is null is taken away. Needs the role manager.',
    path,
    query: forceQuery,
    body: { content: json(withNulls(collectionChangeBody), { access_mode: 'collection' }) },
    answers: one,
    errors: {
      unprocessable: { code: 'invalid_name', message: badName },
      unknown_field: '"chunking" is not a known field.',
      not_found: absent,
      permission_denied: [
        noManager,
        mayNotShare.replace('the file', 'every file in the collection'),
      ],
      conflict: [nameTaken, inUse],
    },
  }),
  remove: operation({
    tag,
    summary: 'Delete a collection',
    description: 'Its files stay. Only its owner may.',
    path,
    query: forceQuery,
    answers: {
      200: {
        description: 'It is gone.',
        content: json(deletedCollection, {
          id: idExample,
          name: 'handbooks',
          object: 'collection.deleted',
          deleted: true,
        }),
      },
    },
    errors: {
      not_found: absent,
      permission_denied: 'This needs the role owner on the collection; yours is manager.',
      conflict: inUse,
      unprocessable: '"force" must be true or false.',
    },
  }),
}

export const memberOperations = {
  add: operation({
    tag,
    summary: 'Put a file into a collection',
    description:
      'It is read, split and embedded after the answer. One that is there already stays, with the attributes that are given now. Needs the role editor.',
    path,
    body: {
      content: json(withNulls(newMemberBody), {
        file_id: fileIdExample,
        attributes: { language: 'en' },
      }),
    },
    answers: {
      202: { description: 'It is in the collection.', content: json(memberRecord, member) },
    },
    errors: {
      not_found: [absent, absentFile],
      permission_denied: [noEditor, mayNotShare],
      unprocessable: [
        '"file_id" is required.',
        {
          code: 'collection_full',
          message: 'The collection "handbooks" has 1000000 files, which is the limit.',
        },
      ],
      unknown_field: '"colour" is not a known field.',
    },
  }),
  list: operation({
    tag,
    summary: 'List the files of a collection',
    description:
      'Those that the caller may read. With `access_mode: "collection"` also those that a user who may share them has added.',
    path,
    query: orderedPageQuery,
    answers: {
      200: {
        description: 'A page of files, by the id of the file.',
        content: json(listOf(memberRecord), {
          ...listExample({ ...member, id: fileIdExample }),
          data: [member],
        }),
      },
    },
    errors: { not_found: absent, unprocessable: badPage },
  }),
  find: operation({
    tag,
    summary: 'Show a file of a collection',
    path: memberPath,
    answers: oneFile,
    errors: { not_found: [absent, absentFile] },
  }),
  change: operation({
    tag,
    summary: 'Change the attributes that a file has in a collection',
    description: 'Needs the role editor.',
    path: memberPath,
    body: { content: json(attributesChangeBody, { attributes: { language: 'de', draft: null } }) },
    answers: oneFile,
    errors: {
      not_found: [absent, absentFile],
      permission_denied: noEditor,
      unprocessable: ['"attributes" is required.', '"attributes" must have at most 16 keys.'],
    },
  }),
  remove: operation({
    tag,
    summary: 'Take a file out of a collection',
    description: 'The file itself stays. Needs the role editor.',
    path: memberPath,
    answers: {
      200: {
        description: 'It is out.',
        content: json(deleted('collection.file.deleted'), {
          id: fileIdExample,
          object: 'collection.file.deleted',
          deleted: true,
        }),
      },
    },
    errors: {
      not_found: [absent, absentFile],
      permission_denied: noEditor,
      conflict: {
        code: 'file_followed',
        message:
          "This file is here since it is in the collection's folder; move it, or follow no folder.",
      },
    },
  }),
}
