import { ifMatchHeader } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import {
  folderExample,
  folderTooDeep,
  invalidName,
  moveOutOfShare,
  noFolder,
  placeFailures,
  staleVersion,
  treeFull,
} from './examples.ts'
import { folderRecord, folderWithPath, nodeDeleted } from './record.ts'
import { folderChange, folderRemoval, move, newFolder, restore } from './schema.ts'

const tag = 'Files'
const path = { id: 'The id of the folder.' }
const headers = { etag: 'The version of the record.' }
const shown = (description: string) => ({
  description,
  content: json(folderRecord, folderExample),
  headers,
})
const notEditor = 'This takes the role editor on the folder.'
const moveConflicts = [
  placeFailures.conflict,
  { code: 'folder_cycle', message: 'A folder cannot be moved into itself.' },
]

export const folderOperations = {
  create: operation({
    tag,
    summary: 'Create a folder',
    description: "In somebody else's folder it is theirs. Folders may be 32 deep.",
    body: { content: json(newFolder, { name: 'Reports', folder_id: null }) },
    answers: { 201: shown('The folder.') },
    errors: {
      not_found: noFolder,
      permission_denied: notEditor,
      ...placeFailures,
      unprocessable: ['"name" is required.', invalidName, folderTooDeep, treeFull],
    },
  }),
  show: operation({
    tag,
    summary: 'Show a folder',
    description: 'With the folders above it.',
    path,
    answers: {
      200: {
        description: 'The folder.',
        content: json(folderWithPath, { ...folderExample, path: [] }),
        headers,
      },
    },
    errors: { not_found: noFolder },
  }),
  change: operation({
    tag,
    summary: 'Change a folder',
    description: 'Renames or moves it, with all that is in it.',
    path,
    headers: ifMatchHeader,
    body: { content: json(folderChange, { name: 'Reports of 2026' }) },
    answers: { 200: shown('The folder as it is now.') },
    errors: {
      not_found: noFolder,
      permission_denied: [notEditor, moveOutOfShare],
      ...placeFailures,
      conflict: moveConflicts,
      unprocessable: ['"name" must be a string.', invalidName, folderTooDeep, treeFull],
      precondition_failed: staleVersion,
    },
  }),
  move: operation({
    tag,
    summary: 'Move a folder',
    description:
      'Into another, or to the top, with all that is in it. In a folder of somebody else all of it becomes theirs, which takes the role owner on it.',
    path,
    headers: ifMatchHeader,
    body: { content: json(move, { folder_id: null }) },
    answers: { 200: shown('The folder where it is now.') },
    errors: {
      not_found: noFolder,
      permission_denied: [notEditor, moveOutOfShare],
      ...placeFailures,
      conflict: moveConflicts,
      unprocessable: ['"folder_id" is required.', folderTooDeep, treeFull],
      precondition_failed: staleVersion,
    },
  }),
  remove: operation({
    tag,
    summary: 'Delete a folder',
    description: 'Into the trash of its owner, with all that is in it.',
    path,
    query: folderRemoval,
    headers: ifMatchHeader,
    answers: {
      200: {
        description: 'It is deleted, and so much with it.',
        content: json(nodeDeleted, {
          id: folderExample.id,
          object: 'folder',
          deleted: true,
          files: 3,
          folders: 2,
        }),
      },
    },
    errors: {
      not_found: noFolder,
      permission_denied: notEditor,
      conflict: {
        code: 'folder_not_empty',
        message: 'The folder is not empty; delete it with recursive=true.',
      },
      unprocessable: '"recursive" must be "true" or "false".',
      precondition_failed: staleVersion,
    },
  }),
  restore: operation({
    tag,
    summary: 'Restore a folder',
    description:
      'Out of the trash, with what was in it, to where it was or, where that folder is no more, to the top of its owner. What is not in the trash stays as it is. The body may be left out.',
    path,
    body: { content: json(restore, {}), isOptional: true },
    answers: { 200: shown('The folder where it is now.') },
    errors: {
      not_found: noFolder,
      conflict: placeFailures.conflict,
      unprocessable: folderTooDeep,
      gone: { code: 'purged', message: 'This folder was in the trash for too long.' },
    },
  }),
}
