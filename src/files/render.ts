import type { FileView, FolderView, NodeView } from './files.ts'
import type { FileRecord, FolderRecord, NodeRecord } from './record.ts'

/** A file on the wire: what OpenAI's clients read of one, and the rest beside it. */
export function renderFile(file: FileView): FileRecord {
  return {
    id: file.id,
    object: 'file',
    filename: file.name,
    name: file.name,
    folder_id: file.folderId,
    owner: { id: file.ownerId, name: file.ownerName },
    created_by: file.createdBy,
    bytes: file.bytes,
    mime_type: file.mimeType,
    sha256: file.sha256,
    purpose: file.purpose,
    status: statusOf(file),
    retrieval_status: file.retrieval?.status ?? null,
    retrieval: file.retrieval === null ? null : renderRetrieval(file.retrieval),
    attributes: file.attributes,
    shared: file.isShared,
    my_role: file.role,
    version: file.version,
    created_at: file.createdAt.toISOString(),
    updated_at: file.updatedAt.toISOString(),
    expires_at: file.expiresAt?.toISOString() ?? null,
  }
}

/** `folder_id` is the folder that it is in. */
export function renderFolder(folder: FolderView): FolderRecord {
  return {
    id: folder.id,
    object: 'folder',
    name: folder.name,
    folder_id: folder.folderId,
    owner: { id: folder.ownerId, name: folder.ownerName },
    created_by: folder.createdBy,
    shared: folder.isShared,
    my_role: folder.role,
    child_counts: folder.childCounts,
    version: folder.version,
    created_at: folder.createdAt.toISOString(),
    updated_at: folder.updatedAt.toISOString(),
  }
}

export function renderNode(node: NodeView): NodeRecord {
  return node.kind === 'file' ? renderFile(node) : renderFolder(node)
}

/** Clients wait until it is `processed` or `error`; with nothing to wait for it is the former. */
function statusOf({ retrieval }: FileView): FileRecord['status'] {
  switch (retrieval?.status) {
    case 'Pending':
    case 'Processing':
      return 'processing'
    case 'Failed':
      return 'error'
    default:
      return 'processed'
  }
}

function renderRetrieval({
  state,
  error,
  chunks,
  collections,
}: NonNullable<FileView['retrieval']>): FileRecord['retrieval'] {
  return { state, error, chunks, collections: [...collections] }
}
