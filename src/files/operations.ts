import { ifMatchHeader } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import {
  fileExample,
  invalidName,
  moveOutOfShare,
  noFile,
  placeFailures,
  staleVersion,
  treeFull,
} from './examples.ts'
import { fileRecord, nodeDeleted } from './record.ts'
import { copy, fileChange, fileRemoval, move, restore } from './schema.ts'

const tag = 'Files'
const path = { id: 'The id of the file.' }
const headers = { etag: 'The version of the record.' }
const shown = (description: string) => ({
  description,
  content: json(fileRecord, fileExample),
  headers,
})
const notEditor = 'This takes the role editor on the file.'

export const fileOperations = {
  show: operation({
    tag,
    summary: 'Show a file',
    path,
    answers: { 200: shown('The file.') },
    errors: { not_found: noFile },
  }),
  change: operation({
    tag,
    summary: 'Change a file',
    description: 'Renames or moves it, or changes its attributes; all of it or nothing.',
    path,
    headers: ifMatchHeader,
    body: { content: json(fileChange, { name: 'summary.pdf', attributes: { draft: null } }) },
    answers: { 200: shown('The file as it is now.') },
    errors: {
      not_found: noFile,
      permission_denied: [notEditor, moveOutOfShare],
      ...placeFailures,
      unprocessable: ['"attributes" must have at most 16 keys.', invalidName, treeFull],
      precondition_failed: staleVersion,
    },
  }),
  move: operation({
    tag,
    summary: 'Move a file',
    description:
      'Into another folder, or to the top. In a folder of somebody else it becomes theirs, which takes the role owner on it.',
    path,
    headers: ifMatchHeader,
    body: { content: json(move, { folder_id: fileExample.folder_id }) },
    answers: { 200: shown('The file where it is now.') },
    errors: {
      not_found: noFile,
      permission_denied: [notEditor, moveOutOfShare],
      ...placeFailures,
      unprocessable: ['"folder_id" is required.', treeFull],
      precondition_failed: staleVersion,
    },
  }),
  copy: operation({
    tag,
    summary: 'Copy a file',
    description: 'Takes no more than the right to read it. The copy is in no collection.',
    path,
    body: { content: json(copy, { folder_id: null, on_conflict: 'rename' }) },
    answers: { 201: shown('The copy.') },
    errors: {
      not_found: noFile,
      permission_denied: 'This takes the role editor on the folder.',
      ...placeFailures,
      unprocessable: [invalidName, treeFull],
    },
  }),
  remove: operation({
    tag,
    summary: 'Delete a file',
    description:
      'Into the trash of its owner, from where it can be restored for as long as the configuration says, or for ever.',
    path,
    query: fileRemoval,
    headers: ifMatchHeader,
    answers: {
      200: {
        description: 'It is deleted.',
        content: json(nodeDeleted, { id: fileExample.id, object: 'file', deleted: true }),
      },
    },
    errors: {
      not_found: noFile,
      permission_denied: [notEditor],
      unprocessable: '"permanent" must be "true" or "false".',
      precondition_failed: staleVersion,
    },
  }),
  restore: operation({
    tag,
    summary: 'Restore a file',
    description:
      'Out of the trash, to where it was or, where that folder is no more, to the top of its owner. What is not in the trash stays as it is. The body may be left out.',
    path,
    body: { content: json(restore, { on_conflict: 'rename' }), isOptional: true },
    answers: { 200: shown('The file where it is now.') },
    errors: {
      not_found: noFile,
      conflict: placeFailures.conflict,
      gone: { code: 'purged', message: 'This file was in the trash for too long.' },
    },
  }),
}
