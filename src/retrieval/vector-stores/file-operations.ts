import { withNulls } from '#api/described.ts'
import { deleted, idExample, listExample, listOf } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { type FileBatch, fileBatch, type StoredFile, storedFile } from './answer-schema.ts'
import { absentStore, badPage } from './operations.ts'
import { batchBody, ownAttributesBody, storeFilesQuery, storeMemberBody } from './schema.ts'

const tag = 'Vector stores'
const fileIdExample = '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61'
const batchIdExample = '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a64'
const path = { id: 'The id of the store, or the name of its collection.' }
const filePath = { ...path, fileId: 'The id of the file.' }
const batchPath = { ...path, batchId: 'The id of the batch.' }

const file: StoredFile = {
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
const batch: FileBatch = {
  id: batchIdExample,
  object: 'vector_store.files_batch',
  created_at: 1_795_253_400,
  vector_store_id: idExample,
  status: 'in_progress',
  file_counts: { in_progress: 2, completed: 0, failed: 0, cancelled: 0, total: 2 },
}

const absentFile = `There is no file with the id "${fileIdExample}".`
const absentBatch = `There is no batch of files with the id "${batchIdExample}".`
const noEditor = 'This needs the role editor on the collection; yours is viewer.'
const otherChunking = 'All files of a vector store are split in the one way that the store has.'
const full = {
  code: 'collection_full',
  message: 'The collection "support-faq" has 1000000 files, which is the limit.',
}
const badFilter = '"filter" must be in_progress, completed, failed or cancelled.'
const one = { 200: { description: 'The file.', content: json(storedFile, file) } }
const oneBatch = { 200: { description: 'The batch.', content: json(fileBatch, batch) } }
const page = {
  200: { description: 'A page of files.', content: json(listOf(storedFile), listExample(file)) },
}

export const storeFileOperations = {
  add: operation({
    tag,
    summary: 'Put a file into a vector store',
    description: 'It is read, split and embedded after the answer. Needs the role editor.',
    path,
    body: {
      content: json(withNulls(storeMemberBody), {
        file_id: fileIdExample,
        attributes: { language: 'en' },
      }),
    },
    answers: one,
    errors: {
      not_found: [absentStore, absentFile],
      permission_denied: noEditor,
      invalid_request: ['"file_id" is required.', otherChunking, full],
    },
  }),
  list: operation({
    tag,
    summary: 'List the files of a vector store',
    description: 'Those that the caller may read.',
    path,
    query: storeFilesQuery,
    answers: page,
    errors: { not_found: absentStore, invalid_request: [badPage, badFilter] },
  }),
  find: operation({
    tag,
    summary: 'Show a file of a vector store',
    path: filePath,
    answers: one,
    errors: { not_found: [absentStore, absentFile] },
  }),
  change: operation({
    tag,
    summary: 'Set the attributes that a file has in a vector store',
    description: 'They take the place of those that it had. Needs the role editor.',
    path: filePath,
    body: {
      content: json(withNulls(ownAttributesBody), { attributes: { language: 'de' } }),
    },
    answers: one,
    errors: {
      not_found: [absentStore, absentFile],
      permission_denied: noEditor,
      invalid_request: '"attributes" must have at most 16 keys.',
    },
  }),
  remove: operation({
    tag,
    summary: 'Take a file out of a vector store',
    description: 'The file itself stays. Needs the role editor.',
    path: filePath,
    answers: {
      200: {
        description: 'It is out.',
        content: json(deleted('vector_store.file.deleted'), {
          id: fileIdExample,
          object: 'vector_store.file.deleted',
          deleted: true,
        }),
      },
    },
    errors: {
      not_found: [absentStore, absentFile],
      permission_denied: noEditor,
      conflict: {
        code: 'file_followed',
        message:
          "This file is here since it is in the collection's folder; move it, or follow no folder.",
      },
    },
  }),
}

export const batchOperations = {
  add: operation({
    tag,
    summary: 'Put files into a vector store',
    description:
      'All of them or none, up to 500 at once: `file_ids` with what is common to them, `files` with what each has of its own. Needs the role editor.',
    path,
    body: { content: json(withNulls(batchBody), { file_ids: [fileIdExample] }) },
    answers: oneBatch,
    errors: {
      not_found: [absentStore, absentFile],
      permission_denied: noEditor,
      invalid_request: ['"file_ids" must name files.', otherChunking, full],
    },
  }),
  find: operation({
    tag,
    summary: 'Show how far files have come that were added together',
    path: batchPath,
    answers: oneBatch,
    errors: { not_found: [absentStore, absentBatch] },
  }),
  list: operation({
    tag,
    summary: 'List files that were added together',
    path: batchPath,
    query: storeFilesQuery,
    answers: page,
    errors: {
      not_found: [absentStore, absentBatch],
      invalid_request: [badPage, badFilter],
    },
  }),
}
