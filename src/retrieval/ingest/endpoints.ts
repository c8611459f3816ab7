import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import {
  fileExample,
  fileNotFound,
  fileRecord,
  notFileEditor,
  withVersionTag,
} from '#files/record.ts'
import { parseNodeId, requireRole } from '#files/tree/checks.ts'
import type { Files } from '#files/tree.ts'
import type { Ingest } from './ingest.ts'

export function ingestEndpoints({
  files,
  ingest,
}: {
  files: Pick<Files, 'find'>
  ingest: Pick<Ingest, 'reprocess'>
}): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/v1/files/:id/reprocess',
      permission: 'can_access_api',
      tag: 'Files',
      summary: 'Process a file again',
      description:
        'Reads, splits and embeds the file again for all of its collections, after the response. Needs the role editor.',
      params: { id: 'The id of the file.' },
      responses: {
        202: {
          description: 'The file.',
          content: json(fileRecord, fileExample),
          headers: { etag: 'The version of the record.' },
        },
      },
      errors: {
        not_found: fileNotFound,
        permission_denied: notFileEditor,
        conflict: { code: 'already_processing', message: 'The file is being processed.' },
      },
      async handle({ params, context: { principal }, set }) {
        const id = parseNodeId('file', params.id)
        const { my_role: role } = await files.find(principal, id)
        requireRole(role, 'editor', 'file')
        await ingest.reprocess(id)
        return withVersionTag(await files.find(principal, id), set)
      },
    }),
  ]
}
