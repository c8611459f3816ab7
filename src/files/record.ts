import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { oneOf } from './schema.ts'

/** What the routes of files and folders answer with. */

const role = oneOf('viewer', 'editor', 'manager', 'owner')

const nodeFields = {
  name: Type.String(),
  folder_id: nullable(
    Type.String({ format: 'uuid' }),
    'The folder that it is in; null at the top of a tree, and where the caller may not see the folder.',
  ),
  owner: Type.Object({
    id: Type.String({ format: 'uuid' }),
    name: nullable(Type.String(), 'Null for one who was never seen.'),
  }),
  created_by: Type.String({ format: 'uuid' }),
  shared: Type.Boolean({
    description: 'Whether it, or a folder above it, is shared with anybody.',
  }),
  my_role: role,
  version: Type.Integer({ description: 'Rises with each change; the `ETag` of the record.' }),
  created_at: instant('When it was made'),
  updated_at: instant('When it was last changed'),
}

export const attributes = Type.Record(
  Type.String(),
  Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
  { description: 'What searches can filter by.' },
)

const retrieval = Type.Object({
  state: Type.String({
    description:
      '`waiting`, `parsing`, `splitting`, `embedding`, `indexing`, `completed`, `skipped`, `error`.',
  }),
  error: nullable(
    Type.Object({ code: Type.String(), message: Type.String() }),
    'Why it cannot be found.',
  ),
  chunks: Type.Integer({ description: 'Passages that are searched.' }),
  collections: Type.Array(Type.String(), { description: 'Those that have it, by their names.' }),
})

export const fileRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('file'),
    filename: Type.String({ description: 'The same as `name`.' }),
    ...nodeFields,
    bytes: Type.Integer(),
    mime_type: Type.String({ description: 'By the bytes, never by what its sender says.' }),
    sha256: Type.String({ description: 'Of the content; the `ETag` of the content.' }),
    purpose: Type.String(),
    status: Type.Union(
      (['processing', 'processed', 'error'] as const).map((status) => Type.Literal(status)),
      { description: 'Whether there is something to wait for before it can be found.' },
    ),
    retrieval_status: nullable(
      oneOf('RAG Available', 'Processing', 'Pending', 'Not Supported', 'Failed'),
      'Of the collection in which it has fared worst; null where it is in none.',
    ),
    retrieval: nullable(retrieval, 'The same in detail.'),
    attributes,
    expires_at: nullable(Type.String({ format: 'date-time' }), 'When it is deleted.'),
  },
  { $id: 'File' },
)
export type FileRecord = Static<typeof fileRecord>

const folderFields = {
  id: Type.String({ format: 'uuid' }),
  object: Type.Literal('folder'),
  ...nodeFields,
  child_counts: Type.Object(
    { files: Type.Integer(), folders: Type.Integer() },
    { description: 'Directly in it; of each, no more than 1,000 are counted.' },
  ),
}
export const folderRecord = Type.Object(folderFields, { $id: 'Folder' })
export type FolderRecord = Static<typeof folderRecord>

export type NodeRecord = FileRecord | FolderRecord

export const folderWithPath = Type.Object(
  {
    ...folderFields,
    path: Type.Array(Type.Object({ id: Type.String({ format: 'uuid' }), name: Type.String() }), {
      description: 'The folders above it, from the top, as far as the caller may see them.',
    }),
  },
  { $id: 'FolderWithPath' },
)
export type FolderWithPath = Static<typeof folderWithPath>

export const nodeDeleted = Type.Object({
  id: Type.String({ format: 'uuid' }),
  object: oneOf('file', 'folder'),
  deleted: Type.Literal(true),
  files: Type.Optional(Type.Integer({ description: 'Of a folder: how many were in it.' })),
  folders: Type.Optional(Type.Integer({ description: 'Of a folder: itself and those in it.' })),
})
export type NodeDeleted = Static<typeof nodeDeleted>
