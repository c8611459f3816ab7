import { type Static, Type } from '@sinclair/typebox'
import { idExample, instantExample, nullable, unixTime } from '#api/shapes.ts'
import { expiryS, purpose } from '#files/content/upload-fields.ts'
import { type FileRecord, fileExample, fileRecord } from '#files/record.ts'
import { oneOf, strict } from '#files/schema.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { PartRow, UploadRow } from './store.ts'

/** As in OpenAI's API. */
export const partsMax = 10_000
export const partBytesMax = 67_108_864
const nameCharsMax = 1_024
const mimeTypeCharsMax = 255

export const newUpload = strict({
  filename: Type.String({ description: 'The name of the file.', maxLength: nameCharsMax }),
  purpose: Type.String(purpose),
  bytes: Type.Integer({ description: 'The size of the whole file.', minimum: 0 }),
  mime_type: Type.String({
    description: 'The type of the file; the one that counts is detected from the content.',
    maxLength: mimeTypeCharsMax,
  }),
  expires_after: Type.Optional(
    strict({
      anchor: Type.Literal('created_at'),
      seconds: Type.Integer({ description: 'The lifetime of the file.', ...expiryS }),
    }),
  ),
})
export type NewUpload = Static<typeof newUpload>

export const uploadCompletion = strict({
  part_ids: Type.Array(Type.String(), {
    description: 'The ids of the parts in the order of the file.',
    maxItems: partsMax,
  }),
  md5: Type.Optional(
    Type.String({
      description: 'The MD5 checksum of the file, in hex.',
      pattern: '^[0-9a-fA-F]{32}$',
    }),
  ),
})
export type UploadCompletion = Static<typeof uploadCompletion>

export const uploadRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('upload'),
    bytes: Type.Integer({ description: 'The size of the whole file.' }),
    filename: Type.String(),
    purpose: Type.String(),
    status: oneOf('pending', 'completed', 'cancelled', 'expired'),
    created_at: unixTime('Time of creation, in Unix seconds.'),
    expires_at: unixTime('When a pending upload expires, in Unix seconds.'),
    file: nullable(fileRecord, 'The file of a completed upload.'),
  },
  { $id: 'Upload' },
)
export type UploadRecord = Static<typeof uploadRecord>

export const uploadPartRecord = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('upload.part'),
    upload_id: Type.String({ format: 'uuid' }),
    created_at: unixTime('Time of creation, in Unix seconds.'),
  },
  { $id: 'UploadPart' },
)
export type UploadPartRecord = Static<typeof uploadPartRecord>

export function renderUpload(upload: UploadRow, file: FileRecord | null): UploadRecord {
  const { id, bytes, filename, purpose, status, createdAt, expiresAt } = upload
  return {
    id,
    object: 'upload',
    bytes,
    filename,
    purpose,
    status,
    created_at: unixSeconds(createdAt),
    expires_at: unixSeconds(expiresAt),
    file,
  }
}

export function renderPart({
  id,
  uploadId,
  createdAt,
}: Pick<PartRow, 'id' | 'uploadId' | 'createdAt'>): UploadPartRecord {
  return { id, object: 'upload.part', upload_id: uploadId, created_at: unixSeconds(createdAt) }
}

const createdAt = unixSeconds(new Date(instantExample))

export const uploadExample: UploadRecord = {
  id: idExample,
  object: 'upload',
  bytes: fileExample.bytes,
  filename: fileExample.filename,
  purpose: fileExample.purpose,
  status: 'pending',
  created_at: createdAt,
  expires_at: createdAt + 3_600,
  file: null,
}

export const completedExample: UploadRecord = {
  ...uploadExample,
  status: 'completed',
  file: fileExample,
}

export const partExample: UploadPartRecord = {
  id: '0198f3a2-7b2c-7d15-8a6e-4c3d2e1f5b70',
  object: 'upload.part',
  upload_id: idExample,
  created_at: createdAt,
}
