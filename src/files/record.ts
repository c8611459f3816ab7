import { type Static, Type } from '@sinclair/typebox'
import type { ResponseSettings } from '#api/endpoint.ts'
import { idExample, instant, instantExample, nullable, unixTime } from '#api/shapes.ts'
import { entityTag } from '#lib/entity-tag.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import { oneOf, retrievalStatus } from './schema.ts'

/** Of every endpoint. */
export const common = { permission: 'can_access_api', tag: 'Files' } as const

const nodeFields = {
  name: Type.String(),
  folder_id: nullable(
    Type.String({ format: 'uuid' }),
    'The parent folder; null at the top level, and if the caller may not see the parent.',
  ),
  owner: Type.Object({
    id: Type.String({ format: 'uuid' }),
    name: nullable(Type.String(), 'Null for a user who has never signed in.'),
  }),
  created_by: Type.String({ format: 'uuid' }),
  shared: Type.Boolean({ description: 'Whether it or a folder above it is shared.' }),
  my_role: oneOf('viewer', 'editor', 'manager', 'owner'),
  version: Type.Integer({ description: 'Increases with each change; the `ETag` of the record.' }),
  created_at_iso: instant('Time of creation'),
  updated_at: instant('Time of the last change'),
}

export const attributes = Type.Record(
  Type.String(),
  Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
  { description: 'For filters of a search.' },
)

const retrieval = Type.Object({
  state: Type.String({
    description:
      '`waiting`, `parsing`, `splitting`, `embedding`, `indexing`, `completed`, `skipped`, `error`.',
  }),
  error: nullable(
    Type.Object({ code: Type.String(), message: Type.String() }),
    'Why the file cannot be searched, or why its last attempt failed that will be repeated.',
  ),
  warnings: Type.Array(Type.Object({ code: Type.String(), message: Type.String() }), {
    description:
      'What the text of the file lacks: `pages_without_text`, `images_skipped`, `parts_skipped`, `rows_skipped`, `undecodable`; and `pages_recognized` for text that OCR read.',
  }),
  chunks: Type.Integer({ description: 'The number of indexed passages.' }),
  collections: Type.Array(Type.String(), { description: 'The names of its collections.' }),
  collection_ids: Type.Array(Type.String({ format: 'uuid' }), {
    description: 'Their ids, in the same order.',
  }),
})

/** Has the fields of OpenAI's file object. */
export const fileRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('file'),
    filename: Type.String({ description: 'The same as `name`.' }),
    ...nodeFields,
    created_at: unixTime('Time of creation, in Unix seconds.'),
    bytes: Type.Integer(),
    mime_type: Type.String({ description: 'Detected from the content.' }),
    sha256: Type.String({ description: 'The hash and `ETag` of the content.' }),
    purpose: Type.String(),
    status: Type.Union(
      (['processing', 'processed', 'error'] as const).map((status) => Type.Literal(status)),
      { description: 'Whether processing for retrieval is complete.' },
    ),
    retrieval_status: nullable(
      retrievalStatus,
      'The worst status in any of its collections; null if it is in none.',
    ),
    retrieval: nullable(retrieval, 'Details of `retrieval_status`.'),
    attributes,
    expires_at: nullable(Type.Integer(), 'When the file is deleted, in Unix seconds.'),
    expires_at_iso: nullable(Type.String({ format: 'date-time' }), 'The same as `expires_at`.'),
  },
  { $id: 'File' },
)
export type FileRecord = Static<typeof fileRecord>

const folderFields = {
  id: Type.String({ format: 'uuid' }),
  object: Type.Literal('folder'),
  ...nodeFields,
  created_at: instant('Time of creation'),
  child_counts: Type.Object(
    { files: Type.Integer(), folders: Type.Integer() },
    { description: 'Direct children, each counted up to 1,000.' },
  ),
}
export const folderRecord = Type.Object(folderFields, { $id: 'Folder' })
export type FolderRecord = Static<typeof folderRecord>

export type NodeRecord = FileRecord | FolderRecord

export const folderWithPath = Type.Object(
  {
    ...folderFields,
    path: Type.Array(Type.Object({ id: Type.String({ format: 'uuid' }), name: Type.String() }), {
      description: 'The folders above it that the caller may see, from the top level.',
    }),
  },
  { $id: 'FolderWithPath' },
)

export const nodeDeleted = Type.Object({
  id: Type.String({ format: 'uuid' }),
  object: oneOf('file', 'folder'),
  deleted: Type.Literal(true),
  files: Type.Optional(Type.Integer({ description: 'For a folder: the files in it.' })),
  folders: Type.Optional(
    Type.Integer({ description: 'For a folder: the folders in it and itself.' }),
  ),
})

/** The node; sets its version as the entity tag. */
export function withVersionTag<T extends NodeRecord>(node: T, set: ResponseSettings): T {
  set.headers['etag'] = entityTag(String(node.version))
  return node
}

// Examples and errors that several endpoints document.

const folderId = '0198f3a1-02b7-7a51-8c3d-9e4f6a7b8c90'
export const ownerId = '5b0e7c1a-3d42-5f8e-9a6b-1c2d3e4f5a6b'

const nodeExample = {
  owner: { id: ownerId, name: 'ann' },
  created_by: ownerId,
  shared: false,
  my_role: 'owner',
  version: 1,
  created_at_iso: instantExample,
  updated_at: instantExample,
} as const

export const fileExample: FileRecord = {
  id: idExample,
  object: 'file',
  filename: 'report.pdf',
  name: 'report.pdf',
  folder_id: folderId,
  bytes: 48_213,
  mime_type: 'application/pdf',
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  purpose: 'user_data',
  status: 'processed',
  retrieval_status: 'RAG Available',
  retrieval: {
    state: 'completed',
    error: null,
    warnings: [{ code: 'images_skipped', message: '2 images were not read.' }],
    chunks: 12,
    collections: ['handbook'],
    collection_ids: ['0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a60'],
  },
  attributes: { year: 2026 },
  ...nodeExample,
  created_at: unixSeconds(new Date(instantExample)),
  expires_at: null,
  expires_at_iso: null,
}

export const folderExample: FolderRecord = {
  id: folderId,
  object: 'folder',
  name: 'Reports',
  folder_id: null,
  child_counts: { files: 3, folders: 1 },
  ...nodeExample,
  created_at: instantExample,
}

export const fileNotFound = `There is no file with the id "${idExample}".`
export const folderNotFound = `There is no folder with the id "${folderId}".`

export const notFileEditor = 'This requires the role editor on the file.'
export const notFolderEditor = 'This requires the role editor on the folder.'

/** Errors of endpoints that put a node into a folder. */
export const destinationErrors = {
  conflict: {
    code: 'name_conflict',
    message: 'The name "report.pdf" is already taken in this folder.',
  },
  removed_field: {
    code: 'folder_path_removed',
    message: '"folder_path" was removed; use "folder_id".',
  },
  unknown_field: '"colour" is not a known field.',
} as const

export const invalidName = { code: 'invalid_name', message: '"name" must not have slashes.' }
export const tooManyFiles = {
  code: 'too_many_files',
  message: 'The owner of the folder has 1000000 files and folders, which is the limit.',
}
