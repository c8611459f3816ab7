import type { CollectionRecord, MemberRecord, MembershipRecord } from './answer-schema.ts'
import type {
  Collection,
  CollectionIndex,
  FileMembership,
  Member,
  MemberState,
  Page,
} from './collections.ts'

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
    followed: member.isFollowed,
    added_at: member.addedAt.toISOString(),
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
    followed: membership.isFollowed,
    added_at: membership.addedAt.toISOString(),
  }
}

/** A file that has no text for a search counts as failed: nobody will find it. */
export function statusOf(state: MemberState): MemberRecord['status'] {
  if (state === 'pending') return 'in_progress'
  return state === 'done' ? 'completed' : 'failed'
}

export function renderPage<T, R>(
  { items, hasMore }: Page<T>,
  render: (item: T) => R,
  idOf: (item: T) => string,
) {
  const [first, last] = [items[0], items.at(-1)]
  return {
    object: 'list' as const,
    data: items.map(render),
    has_more: hasMore,
    first_id: first === undefined ? null : idOf(first),
    last_id: last === undefined ? null : idOf(last),
  }
}

function renderIndex({ id, model, dims, state }: CollectionIndex) {
  return { id: String(id), embedding_model: model, dims, state }
}
