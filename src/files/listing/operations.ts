import { instantExample, listExample } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { fileExample, folderExample, noFolder } from '#files/examples.ts'
import { childList, fileList, foundList, trashList } from './answer-schema.ts'
import {
  childrenBody,
  childrenQuery,
  listQuery,
  searchBody,
  searchQuery,
  trashQuery,
} from './schema.ts'

const tag = 'Files'
const invalidCursor = {
  code: 'invalid_cursor',
  message: '"cursor" must be the "next" of a page of this list.',
}
const badLimit = '"limit" must be a whole number or null.'
const readErrors = {
  not_found: noFolder,
  removed_field: {
    code: 'folder_path_removed',
    message: '"folder_path" was removed; use "folder_id".',
  },
  unknown_field: '"colour" is not a known field.',
} as const

const children = {
  tag,
  summary: 'List the children of a folder',
  description:
    'Folders first. At the top: what the caller has there, and what others have given them. What is added or deleted meanwhile moves no page.',
  answers: {
    200: {
      description: 'A page of files and folders.',
      content: json(childList, {
        object: 'list',
        folder: folderExample,
        data: [fileExample],
        has_more: false,
        next: null,
      }),
    },
  },
  errors: { ...readErrors, unprocessable: [badLimit, invalidCursor] },
} as const

const search = {
  tag,
  summary: 'Find files and folders by name',
  description:
    'All words must be in the name, whatever their case. What is in the files is searched through a collection.',
  answers: {
    200: {
      description: 'A page of what was found, by name.',
      content: json(foundList, {
        object: 'list',
        data: [
          { ...fileExample, match: { name: 'report.pdf', highlight: [{ start: 0, end: 6 }] } },
        ],
        has_more: false,
        next: null,
      }),
    },
  },
  errors: {
    ...readErrors,
    unprocessable: [
      badLimit,
      { code: 'query_empty', message: '"query" must not be empty.' },
      invalidCursor,
    ],
  },
} as const

const sameAs = (query: string) => ` The same as with the query of \`${query}\`, as a body.`

export const listingOperations = {
  list: operation({
    tag,
    summary: 'List files',
    description: 'Your own and those that others have given you, newest first.',
    query: listQuery,
    answers: {
      200: {
        description: 'A page of files.',
        content: json(fileList, { ...listExample(fileExample), next: null }),
      },
    },
    errors: {
      unprocessable: '"before" does not go with "after".',
      unknown_field: '"colour" is not a known field.',
    },
  }),
  children: operation({ ...children, query: childrenQuery }),
  postChildren: operation({
    ...children,
    description: children.description + sameAs('GET'),
    body: { content: json(childrenBody, { folder_id: folderExample.id, sort: 'updated_at' }) },
  }),
  search: operation({ ...search, query: searchQuery }),
  postSearch: operation({
    ...search,
    description: search.description + sameAs('GET'),
    body: { content: json(searchBody, { query: 'report', mime_type: 'application/pdf' }) },
  }),
  trash: operation({
    tag,
    summary: 'List the trash',
    description: 'What you have deleted and can restore, the latest first.',
    query: trashQuery,
    answers: {
      200: {
        description: 'What is in the trash.',
        content: json(trashList, {
          object: 'list',
          data: [
            {
              id: fileExample.id,
              object: 'file',
              name: fileExample.name,
              trashed_at: instantExample,
            },
          ],
        }),
      },
    },
    errors: { unprocessable: badLimit },
  }),
}
