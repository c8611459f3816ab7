import { type Static, Type } from '@sinclair/typebox'
import { deleted, instant, nullable } from '#api/shapes.ts'
import { attributes } from '#files/record.ts'
import { accessMode, chunkingShape } from './schema.ts'

/** What `/v1/collections` answers. */

const index = Type.Object(
  {
    id: Type.String(),
    embedding_model: Type.String(),
    dims: Type.Integer({ description: 'How many numbers its vectors have.' }),
    state: Type.Union([
      Type.Literal('building'),
      Type.Literal('active'),
      Type.Literal('warm'),
      Type.Literal('dropping'),
    ]),
  },
  { description: 'Where it is searched.' },
)

export const collectionRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('collection'),
    name: Type.String({ description: 'What callers and agents name it by.' }),
    description: nullable(Type.String(), 'What it is about.'),
    access_mode: accessMode,
    owner: Type.Object({ id: Type.String(), name: nullable(Type.String(), 'As far as known.') }),
    my_role: Type.Union(
      [
        Type.Literal('viewer'),
        Type.Literal('editor'),
        Type.Literal('manager'),
        Type.Literal('owner'),
      ],
      { description: 'What the caller may do with it.' },
    ),
    folder_id: nullable(Type.String(), 'The folder whose files are all in it.'),
    index,
    target_index: nullable(index, 'Where new files go while a reindex runs.'),
    file_counts: Type.Object(
      {
        total: Type.Integer(),
        completed: Type.Integer(),
        in_progress: Type.Integer(),
        failed: Type.Integer({ description: 'Those without a text among them.' }),
      },
      { description: 'Without what is in the trash.' },
    ),
    chunking: chunkingShape,
    created_at: instant('When it was made'),
    updated_at: instant('When it was last changed'),
  },
  { $id: 'Collection' },
)
export type CollectionRecord = Static<typeof collectionRecord>

export const fileStatus = Type.Union([
  Type.Literal('in_progress'),
  Type.Literal('completed'),
  Type.Literal('failed'),
])

/** As a collection has them. */
export const fileAttributes = {
  ...attributes,
  description: 'Those of the file, with those that it has here over them.',
}

export const memberRecord = Type.Object(
  {
    file_id: Type.String({ format: 'uuid' }),
    object: Type.Literal('collection.file'),
    filename: Type.String(),
    bytes: Type.Integer(),
    status: fileStatus,
    stage: nullable(Type.String(), 'What is being done with it; null when nothing is.'),
    error: nullable(
      Type.Object({ code: Type.String(), message: Type.String() }),
      'Why it cannot be found.',
    ),
    chunks: Type.Integer({ description: 'Its passages.' }),
    attributes: fileAttributes,
    followed: Type.Boolean({ description: "Whether it is here by the collection's folder." }),
    added_at: instant('When it came into the collection'),
  },
  { $id: 'CollectionFile' },
)
export type MemberRecord = Static<typeof memberRecord>

export const membershipRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the collection.' }),
    object: Type.Literal('file.collection'),
    name: Type.String({ description: 'The name of the collection.' }),
    owner: Type.Object({
      id: Type.String(),
      name: nullable(Type.String(), 'Null for a user who has never signed in.'),
    }),
    access_mode: accessMode,
    shared_by: Type.Object(
      {
        id: Type.String(),
        name: nullable(Type.String(), 'Null for a user who has never signed in.'),
      },
      { description: 'The user whose right to share the file opens it to the collection.' },
    ),
    open: Type.Boolean({
      description: "Whether everyone who sees the collection finds the file's passages.",
    }),
    followed: Type.Boolean({ description: "Whether it is here by the collection's folder." }),
    added_at: instant('When it was added to the collection'),
  },
  { $id: 'FileCollection', description: 'A collection that a file is in.' },
)
export type MembershipRecord = Static<typeof membershipRecord>

export const deletedCollection = Type.Object({
  ...deleted('collection.deleted').properties,
  name: Type.String(),
})
