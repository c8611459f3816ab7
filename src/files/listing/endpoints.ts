import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { instant, instantExample, listOf, listPage, nullable } from '#api/shapes.ts'
import {
  common,
  destinationErrors,
  fileExample,
  fileRecord,
  folderExample,
  folderNotFound,
  folderRecord,
  renderFile,
  renderFolder,
  renderNode,
} from '#files/record.ts'
import { oneOf } from '#files/schema.ts'
import type { Files } from '#files/tree.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import {
  type ChildrenParams,
  childrenBody,
  childrenQuery,
  listQuery,
  parseChildren,
  parseSearch,
  type SearchParams,
  searchBody,
  searchQuery,
  trashQuery,
} from './schema.ts'
import { highlight } from './search-terms.ts'

/** Lists of files and folders. Children and search take their parameters as a query or as a body. */
export function listingEndpoints({ files }: { files: Files }): Endpoint[] {
  async function listChildren(
    principal: RequestPrincipal,
    params: ChildrenParams,
  ): Promise<Static<typeof childList>> {
    const { folder, items, hasMore, next } = await files.children(principal, params)
    return {
      object: 'list',
      folder: folder === null ? null : renderFolder(folder),
      data: items.map(renderNode),
      has_more: hasMore,
      next,
    }
  }
  async function search(
    principal: RequestPrincipal,
    params: SearchParams,
  ): Promise<Static<typeof matchList>> {
    const { items, hasMore, next } = await files.search(principal, params)
    return {
      object: 'list',
      data: items.map((node) => ({
        ...renderNode(node),
        match: { name: node.name, highlight: [...highlight(node.name, params.query)] },
      })),
      has_more: hasMore,
      next,
    }
  }
  return [
    endpoint({
      method: 'GET',
      path: '/v1/files',
      ...common,
      summary: 'List files',
      description: 'Your own and those shared with you, newest first.',
      query: listQuery,
      responses: {
        200: {
          description: 'A page of files.',
          content: json(fileList, { ...listPage([fileExample], false), next: null }),
        },
      },
      errors: {
        unprocessable: '"before" cannot be combined with "after".',
        unknown_field: destinationErrors.unknown_field,
      },
      async handle({ query, context }) {
        const { items, hasMore, next } = await files.list(context.principal, query)
        return {
          object: 'list',
          data: items.map(renderFile),
          has_more: hasMore,
          first_id: items[0]?.id ?? null,
          last_id: items.at(-1)?.id ?? null,
          next,
        } satisfies Static<typeof fileList>
      },
    }),
    endpoint({
      ...childrenDeclaration,
      method: 'GET',
      query: childrenQuery,
      handle: ({ query, context }) => listChildren(context.principal, query),
    }),
    endpoint({
      ...childrenDeclaration,
      method: 'POST',
      description: `${childrenDeclaration.description} Takes the parameters of \`GET\` as a body.`,
      body: jsonBody(childrenBody, {
        example: { folder_id: folderExample.id, sort: 'updated_at' },
        read: parseChildren,
      }),
      handle: ({ body, context }) => listChildren(context.principal, body),
    }),
    endpoint({
      ...searchDeclaration,
      method: 'GET',
      query: searchQuery,
      handle: ({ query, context }) => search(context.principal, query),
    }),
    endpoint({
      ...searchDeclaration,
      method: 'POST',
      description: `${searchDeclaration.description} Takes the parameters of \`GET\` as a body.`,
      body: jsonBody(searchBody, {
        example: { query: 'report', mime_type: 'application/pdf' },
        read: parseSearch,
      }),
      handle: ({ body, context }) => search(context.principal, body),
    }),
    endpoint({
      method: 'GET',
      path: '/v1/files/trash',
      ...common,
      summary: 'List the trash',
      description: 'Files and folders that you have deleted and can restore, newest first.',
      query: trashQuery,
      responses: {
        200: {
          description: 'The trash.',
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
      errors: { unprocessable: invalidLimit },
      async handle({ query, context }) {
        const items = await files.trash(context.principal, query)
        return {
          object: 'list',
          data: items.map(({ id, kind, name, trashedAt }) => ({
            id,
            object: kind,
            name,
            trashed_at: trashedAt.toISOString(),
          })),
        } satisfies Static<typeof trashList>
      },
    }),
  ]
}

const next = nullable(Type.String(), 'The cursor of the next page; null on the last page.')
const hasMore = Type.Boolean({ description: 'Whether another page follows.' })

const fileList = Type.Object({ ...listOf(fileRecord).properties, next })

const childList = Type.Object({
  object: Type.Literal('list'),
  folder: nullable(folderRecord, 'The folder itself; null for the top level.'),
  data: Type.Array(Type.Union([folderRecord, fileRecord])),
  has_more: hasMore,
  next,
})

const match = Type.Object({
  name: Type.String(),
  highlight: Type.Array(Type.Object({ start: Type.Integer(), end: Type.Integer() }), {
    description: 'Occurrences of the terms in the name, in UTF-16 units; `end` is exclusive.',
  }),
})

const matchList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Union([
      Type.Object({ ...folderRecord.properties, match }),
      Type.Object({ ...fileRecord.properties, match }),
    ]),
  ),
  has_more: hasMore,
  next,
})

const trashList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      id: Type.String({ format: 'uuid' }),
      object: oneOf('file', 'folder'),
      name: Type.String(),
      trashed_at: instant('Time of deletion'),
    }),
  ),
})

const invalidLimit = '"limit" must be a whole number or null.'
const invalidCursor = {
  code: 'invalid_cursor',
  message: '"cursor" must be the "next" of a page of this list.',
}
const listErrors = {
  not_found: folderNotFound,
  removed_field: destinationErrors.removed_field,
  unknown_field: destinationErrors.unknown_field,
} as const

const childrenDeclaration = {
  path: '/v1/files/children',
  ...common,
  summary: 'List the children of a folder',
  description:
    'Folders first. The top level has your own nodes and those shared with you. Pages are stable while nodes are added or deleted.',
  responses: {
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
  errors: { ...listErrors, unprocessable: [invalidLimit, invalidCursor] },
} as const

const searchDeclaration = {
  path: '/v1/files/search',
  ...common,
  summary: 'Search files and folders by name',
  description:
    'The name must contain all terms, in any case. To search the content of files, use a collection.',
  responses: {
    200: {
      description: 'A page of matches, by name.',
      content: json(matchList, {
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
    ...listErrors,
    unprocessable: [
      invalidLimit,
      { code: 'query_empty', message: '"query" must not be empty.' },
      invalidCursor,
    ],
  },
} as const
