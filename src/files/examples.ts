import { idExample, instantExample } from '#api/shapes.ts'
import type { FileRecord, FolderRecord } from './record.ts'

/** A file and a folder as the documentation shows them, and failures that many routes share. */

const folderId = '0198f3a1-02b7-7a51-8c3d-9e4f6a7b8c90'
export const ownerId = '5b0e7c1a-3d42-5f8e-9a6b-1c2d3e4f5a6b'

const owned = {
  owner: { id: ownerId, name: 'ann' },
  created_by: ownerId,
  shared: false,
  my_role: 'owner',
  version: 1,
  created_at: instantExample,
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
  retrieval: { state: 'completed', error: null, chunks: 12, collections: ['handbook'] },
  attributes: { year: 2026 },
  ...owned,
  expires_at: null,
}

export const folderExample: FolderRecord = {
  id: folderId,
  object: 'folder',
  name: 'Reports',
  folder_id: null,
  child_counts: { files: 3, folders: 1 },
  ...owned,
}

export const noFile = `There is no file with the id "${idExample}".`
export const noFolder = `There is no folder with the id "${folderId}".`

/** Of what is put somewhere. */
export const placeFailures = {
  conflict: {
    code: 'name_conflict',
    message: 'There is already something with the name "report.pdf".',
  },
  removed_field: {
    code: 'folder_path_removed',
    message: '"folder_path" was removed; use "folder_id".',
  },
  unknown_field: '"colour" is not a known field.',
} as const

export const folderTooDeep = {
  code: 'folder_too_deep',
  message: 'Folders may be 32 deep at most.',
} as const

export const treeFull = {
  code: 'too_many_files',
  message: 'The owner of the folder has 1000000 files and folders, which is the limit.',
} as const

export const invalidName = {
  code: 'invalid_name',
  message: '"name" must not have slashes.',
} as const

export const staleVersion = 'The version is now "3".'

export const moveOutOfShare = {
  code: 'move_out_of_share',
  message: 'Only its owner may move this out of their files; you can copy files.',
}
