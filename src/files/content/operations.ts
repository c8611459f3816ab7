import { Type } from '@sinclair/typebox'
import { ifMatchHeader, ifNoneMatchHeader } from '#api/shapes.ts'
import { bytes, form, json, operation } from '#docs/operation.ts'
import { fileExample, invalidName, noFile, placeFailures, treeFull } from '#files/examples.ts'
import { fileRecord } from '#files/record.ts'
import { uploadFields } from './upload-fields.ts'

const tag = 'Files'
const path = { id: 'The id of the file.' }
const contentHeaders = {
  etag: 'The SHA-256 of the content.',
  'content-disposition': 'The name of the file.',
  'accept-ranges': '`bytes`.',
}
const changedSince = 'The content has changed since.'

/** Of every body that is a file. */
const receiveErrors = {
  request_too_large: { code: 'file_too_large', message: 'A file may have 5368709120 bytes.' },
  request_timeout: 'The request body was not received in time.',
  too_many_streams: 'The server has no room for another upload.',
  service_unavailable: 'The content was not kept; send it again.',
  insufficient_storage: 'There is no room for this file.',
} as const

const rangeHeaders = Type.Object({
  range: Type.Optional(
    Type.String({
      description: 'One range of bytes: `bytes=0-1023`, `bytes=1024-`, `bytes=-512`.',
    }),
  ),
  'if-range': Type.Optional(
    Type.String({ description: 'The `ETag` of the content that the range is to be of.' }),
  ),
  ...ifMatchHeader.properties,
  ...ifNoneMatchHeader.properties,
})
const downloadErrors = {
  not_found: noFile,
  precondition_failed: changedSince,
  range_not_satisfiable: 'The file has 48213 bytes.',
} as const

export const contentOperations = {
  upload: operation({
    tag,
    summary: 'Upload a file',
    description: [
      'As a form with the bytes in `file`, or as its bare bytes with the other fields in the query.',
      'Nothing of it is held in memory, and nothing is kept of what breaks off. What kind of file it',
      'is, its bytes tell. It is there as soon as this is answered; in collections it can be found a',
      'little later, which `retrieval_status` tells.',
    ].join(' '),
    query: uploadFields,
    body: {
      content: {
        ...form(
          Type.Object({
            file: Type.String({ format: 'binary' }),
            ...uploadFields.properties,
          }),
        ),
        ...bytes('application/octet-stream'),
      },
    },
    answers: {
      201: { description: 'The file.', content: json(fileRecord, fileExample) },
    },
    errors: {
      ...receiveErrors,
      invalid_request: 'The body is not a complete multipart form.',
      not_found: 'There is no folder with the id "0198f3a1-02b7-7a51-8c3d-9e4f6a7b8c90".',
      permission_denied: 'This takes the role editor on the folder.',
      conflict: placeFailures.conflict,
      unprocessable: [
        'The form has no file.',
        invalidName,
        { code: 'collection_not_found', message: 'There is no collection "handbook".' },
        treeFull,
      ],
      unknown_field: 'There is no field "colour".',
      removed_field: {
        code: 'folder_path_removed',
        message: 'The field folder_path is gone; use folder_id.',
      },
    },
  }),
  replace: operation({
    tag,
    summary: 'Replace the content of a file',
    description:
      'With the bare bytes of the new one; collections that have the file are brought up to date. `if-match` takes the tag of the content, which is checked before the bytes are read, and again behind them.',
    path,
    headers: ifMatchHeader,
    body: { content: bytes('application/octet-stream') },
    answers: {
      200: { description: 'The file as it is now.', content: json(fileRecord, fileExample) },
    },
    errors: {
      ...receiveErrors,
      not_found: noFile,
      permission_denied: 'This takes the role editor on the file.',
      precondition_failed: changedSince,
    },
  }),
  download: operation({
    tag,
    summary: 'Download a file',
    description:
      'The content type is that of the file. Several ranges, and a range of a content that is no longer there, are answered with all of it.',
    path,
    headers: rangeHeaders,
    answers: {
      200: { description: 'All of it.', content: bytes('*/*'), headers: contentHeaders },
      206: {
        description: 'The range.',
        content: bytes('*/*'),
        headers: { ...contentHeaders, 'content-range': 'Which bytes these are, of how many.' },
      },
      304: { description: 'The caller has it.', headers: contentHeaders },
    },
    errors: downloadErrors,
  }),
  head: operation({
    tag,
    summary: 'Show the size and the tag of the content of a file',
    path,
    headers: rangeHeaders,
    answers: {
      200: {
        description: 'What a download would say, without the bytes.',
        headers: { ...contentHeaders, 'content-length': 'The size.' },
      },
      206: { description: 'The same of a range.', headers: contentHeaders },
      304: { description: 'The caller has it.', headers: contentHeaders },
    },
    errors: downloadErrors,
  }),
}
