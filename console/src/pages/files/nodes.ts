import { signal } from '@preact/signals'
import { call } from '../../api/call.ts'
import type { Folder, File as StoredFile } from '../../api/generated/types.ts'

export type { StoredFile }
export type FileNode = StoredFile | Folder
type Role = FileNode['my_role']

const ranks: Readonly<Record<Role, number>> = { viewer: 0, editor: 1, manager: 2, owner: 3 }

export function isAtLeast(role: Role, required: Role): boolean {
  return ranks[role] >= ranks[required]
}

/** Increases when folders change, so that trees load again. */
export const folderRound = signal(0)

export function isFolder(node: { object: 'file' | 'folder' }): node is Folder {
  return node.object === 'folder'
}

export async function createFolder(name: string, folderId: string | null): Promise<Folder> {
  const created = await call('POST /v1/folders', { body: { name, folder_id: folderId } })
  folderRound.value += 1
  return created
}

export async function renameNode(node: FileNode, name: string): Promise<void> {
  if (!isFolder(node)) {
    await call('PATCH /v1/files/{file_id}', { path: { file_id: node.id }, body: { name } })
    return
  }
  await call('PATCH /v1/folders/{folder_id}', { path: { folder_id: node.id }, body: { name } })
  folderRound.value += 1
}

export async function moveNode(node: FileNode, folderId: string | null): Promise<void> {
  const body = { folder_id: folderId }
  if (!isFolder(node)) {
    await call('POST /v1/files/{file_id}/move', { path: { file_id: node.id }, body })
    return
  }
  await call('POST /v1/folders/{folder_id}/move', { path: { folder_id: node.id }, body })
  folderRound.value += 1
}

export async function deleteNode(node: FileNode): Promise<void> {
  if (!isFolder(node)) {
    await call('DELETE /v1/files/{file_id}', { path: { file_id: node.id } })
    return
  }
  await call('DELETE /v1/folders/{folder_id}', { path: { folder_id: node.id } })
  folderRound.value += 1
}
