import { type TObject, Type } from '@sinclair/typebox'
import {
  type CallerContext,
  type Endpoint,
  endpoint,
  json,
  jsonBody,
  type QueryReader,
} from '#api/endpoint.ts'
import { instant, instantExample, listOf, listPage, nullable } from '#api/shapes.ts'
import {
  common,
  destinationErrors,
  fileExample,
  fileRecord,
  folderExample,
  folderNotFound,
  folderRecord,
} from '#files/record.ts'
import { oneOf } from '#files/schema.ts'
import type { Files } from '#files/tree.ts'
import { childrenParams, fileListParams, searchParams, trashParams } from './schema.ts'

/** Lists of files and folders. Children and search take their parameters as a query or as a body. */
export function listingEndpoints({ files }: { files: Files }): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/v1/files',
      ...common,
      summary: 'List files',
      description: 'Your own and those shared with you, newest first.',
      query: fileListParams.query,
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
      handle: ({ query, context }) => files.list(context.principal, query),
    }),
    ...getAndPost({
      path: '/v1/files/children',
      summary: 'List the children of a folder',
      description:
        'Folders first. The top level has your own nodes and those shared with you. Pages are stable while nodes are added or deleted.',
      params: childrenParams,
      example: { folder_id: null, sort: 'updated_at' },
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
      unprocessable: [invalidLimit, invalidCursor],
      handle: (params, { principal }) => files.children(principal, params),
    }),
    ...getAndPost({
      path: '/v1/files/search',
      summary: 'Search files and folders by name',
      description:
        'The name must contain all terms, in any case. To search the content of files, use a collection.',
      params: searchParams,
      example: { query: 'report', mime_type: 'application/pdf' },
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
      unprocessable: [
        invalidLimit,
        { code: 'query_empty', message: '"query" must not be empty.' },
        invalidCursor,
      ],
      handle: (params, { principal }) => files.search(principal, params),
    }),
    endpoint({
      method: 'GET',
      path: '/v1/files/trash',
      ...common,
      summary: 'List the trash',
      description: 'Files and folders that you have deleted and can restore, newest first.',
      query: trashParams.query,
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
      handle: async ({ query, context }) => ({
        object: 'list',
        data: await files.trash(context.principal, query),
      }),
    }),
  ]
}

/** The same operation as `GET` with a query and as `POST` with a body. */
function getAndPost<Params>({
  params: { schema, parse, query },
  example,
  unprocessable,
  handle,
  ...rest
}: Pick<Endpoint, 'path' | 'summary' | 'responses'> & {
  description: string
  params: {
    schema: TObject
    parse: (body: unknown) => Params
    query: QueryReader<Params>
  }
  example: unknown
  unprocessable: readonly (string | { code: string; message: string })[]
  handle: (params: Params, context: CallerContext) => unknown
}): Endpoint[] {
  const declaration = {
    ...common,
    ...rest,
    errors: {
      not_found: folderNotFound,
      removed_field: destinationErrors.removed_field,
      unknown_field: destinationErrors.unknown_field,
      unprocessable,
    },
  }
  return [
    endpoint({
      ...declaration,
      method: 'GET',
      query,
      handle: (input) => handle(input.query, input.context),
    }),
    endpoint({
      ...declaration,
      method: 'POST',
      description: `${rest.description} Takes the parameters of \`GET\` as a body.`,
      body: jsonBody(schema, { example, read: parse }),
      handle: (input) => handle(input.body, input.context),
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
