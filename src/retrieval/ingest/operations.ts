import { json, operation } from '#docs/operation.ts'
import { fileExample, noFile } from '#files/examples.ts'
import { fileRecord } from '#files/record.ts'

export const ingestOperations = {
  reprocess: operation({
    tag: 'Files',
    summary: 'Read a file again',
    description:
      'For every collection that it is in, from its content on, after the answer. Needs the role editor.',
    path: { id: 'The id of the file.' },
    answers: {
      202: {
        description: 'The file.',
        content: json(fileRecord, fileExample),
        headers: { etag: 'The version of the record.' },
      },
    },
    errors: {
      not_found: noFile,
      permission_denied: 'This takes the role editor on the file.',
      conflict: { code: 'already_processing', message: 'The file is being processed.' },
    },
  }),
}
