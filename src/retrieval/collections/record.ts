import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { attributes } from '#files/record.ts'
import type {
  Collection,
  CollectionIndex,
  FileMembership,
  Member,
  MemberState,
} from './collections.ts'
import { accessMode, chunkingShape } from './schema.ts'

/** The JSON of collections and their members. */

const oneOf = <T extends string>(...values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))

const index = Type.Object(
  {
    id: Type.String(),
    embedding_model: Type.String(),
    dims: Type.Integer({ description: 'Dimensions of its vectors.' }),
    state: oneOf('building', 'active', 'warm', 'dropping'),
  },
  { description: 'The index that is searched.' },
)

const user = (options: { description: string }) =>
  Type.Object(
    { id: Type.String(), name: nullable(Type.String(), 'Null for a user who never signed in.') },
    options,
  )

export const collectionRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('collection'),
    name: Type.String({
      description: 'Unique among the collections of its owner.',
    }),
    description: nullable(Type.String(), 'What it is about.'),
    access_mode: accessMode,
    owner: user({ description: 'The owner of the collection.' }),
    my_role: Type.Union(
      (['viewer', 'editor', 'manager', 'owner'] as const).map((role) => Type.Literal(role)),
      { description: "The caller's role." },
    ),
    folder_id: nullable(Type.String(), 'The folder whose files are members.'),
    index,
    target_index: nullable(index, 'Receives new files while a reindex runs.'),
    file_counts: Type.Object(
      {
        total: Type.Integer(),
        completed: Type.Integer(),
        in_progress: Type.Integer(),
        failed: Type.Integer({ description: 'Includes files without text.' }),
      },
      { description: 'Files in the trash are not counted.' },
    ),
    chunking: chunkingShape,
    created_at: instant('Time of creation'),
    updated_at: instant('Time of the last change'),
  },
  { $id: 'Collection' },
)
type CollectionRecord = Static<typeof collectionRecord>

export const fileStatus = oneOf('in_progress', 'completed', 'failed')

/** The attributes of a member. */
export const fileAttributes = {
  ...attributes,
  description: 'Attributes of the file, overridden by those of the membership.',
}

export const memberRecord = Type.Object(
  {
    file_id: Type.String({ format: 'uuid' }),
    object: Type.Literal('collection.file'),
    filename: Type.String(),
    bytes: Type.Integer(),
    status: fileStatus,
    stage: nullable(Type.String(), 'The current stage of the ingest; null when idle.'),
    error: nullable(
      Type.Object({ code: Type.String(), message: Type.String() }),
      'Why the file cannot be searched, or why its last attempt failed that will be repeated.',
    ),
    chunks: Type.Integer({ description: 'Passages of the file.' }),
    attributes: fileAttributes,
    followed: Type.Boolean({
      description: "Whether it is a member because of the collection's folder.",
    }),
    added_at: instant('Time of addition to the collection'),
  },
  { $id: 'CollectionFile' },
)
export type MemberRecord = Static<typeof memberRecord>

export const membershipRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the collection.' }),
    object: Type.Literal('file.collection'),
    name: Type.String({ description: 'The name of the collection.' }),
    owner: user({ description: 'The owner of the collection.' }),
    access_mode: accessMode,
    shared_by: user({ description: 'The user whose right to share the file opens it.' }),
    open: Type.Boolean({
      description: "Whether everyone who sees the collection finds the file's passages.",
    }),
    followed: memberRecord.properties.followed,
    added_at: memberRecord.properties.added_at,
  },
  { $id: 'FileCollection', description: 'A collection that a file is in.' },
)
export type MembershipRecord = Static<typeof membershipRecord>

export function renderCollection(collection: Collection): CollectionRecord {
  const { counts, chunking } = collection
  return {
    id: collection.id,
    object: 'collection',
    name: collection.name,
    description: collection.description,
    access_mode: collection.accessMode,
    owner: { id: collection.ownerId, name: collection.ownerName },
    my_role: collection.role,
    folder_id: collection.folderId,
    index: renderIndex(collection.index),
    target_index: collection.target === null ? null : renderIndex(collection.target),
    file_counts: {
      total: counts.total,
      completed: counts.completed,
      in_progress: counts.inProgress,
      failed: counts.failed,
    },
    chunking: { max_tokens: chunking.tokensMax, overlap_tokens: chunking.overlapTokens },
    created_at: collection.createdAt.toISOString(),
    updated_at: collection.updatedAt.toISOString(),
  }
}

function renderIndex({ id, model, dims, state }: CollectionIndex) {
  return { id: String(id), embedding_model: model, dims, state }
}

export function renderMember(member: Member): MemberRecord {
  return {
    file_id: member.fileId,
    object: 'collection.file',
    filename: member.filename,
    bytes: member.bytes,
    status: statusOf(member.state),
    stage: member.stage,
    error: member.error,
    chunks: member.chunks,
    attributes: member.attributes,
    followed: member.isFromFolder,
    added_at: member.addedAt.toISOString(),
  }
}

/** One page of a list of files. */
export function filePage<T extends { file_id: string }>(data: readonly T[], hasMore: boolean) {
  const first_id = data[0]?.file_id ?? null
  return {
    object: 'list',
    data,
    has_more: hasMore,
    first_id,
    last_id: data.at(-1)?.file_id ?? null,
  }
}

export function renderMembership(membership: FileMembership): MembershipRecord {
  return {
    id: membership.collectionId,
    object: 'file.collection',
    name: membership.name,
    owner: { id: membership.ownerId, name: membership.ownerName },
    access_mode: membership.accessMode,
    shared_by: membership.sharedBy,
    open: membership.isOpen,
    followed: membership.isFromFolder,
    added_at: membership.addedAt.toISOString(),
  }
}

/** A file without text counts as failed: no search finds it. */
export function statusOf(state: MemberState): MemberRecord['status'] {
  if (state === 'pending') return 'in_progress'
  return state === 'done' ? 'completed' : 'failed'
}
