import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, form, json, jsonBody, rawBody } from '#api/endpoint.ts'
import { idExample } from '#api/shapes.ts'
import type { Receiver } from '#files/content/receive.ts'
import { uploadErrors } from '#files/content/upload-endpoints.ts'
import { invalidName, tooManyFiles } from '#files/record.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import { unknownField } from '#lib/unprocessable.ts'
import {
  completedExample,
  newUpload,
  partBytesMax,
  partExample,
  uploadCompletion,
  uploadExample,
  uploadPartRecord,
  uploadRecord,
} from './schema.ts'
import type { Uploads } from './uploads.ts'

const common = { permission: 'can_access_api', tag: 'Uploads' } as const
const uploadId = { id: 'The id of the upload.' }
const notFound = `There is no upload with the id "${idExample}".`
const notPending = 'The upload is cancelled.'
const part = { what: 'part', formField: 'data', acceptsRaw: false, bytesMax: partBytesMax } as const
const { request_too_large, service_unavailable, insufficient_storage, too_many_streams } =
  uploadErrors

/** Uploads in parts, with the shapes of OpenAI's API. */
export function uploadPartsEndpoints({
  uploads,
  receive,
}: {
  uploads: Uploads
  receive: Receiver['receive']
}): Endpoint[] {
  const uploadResponse = (description: string, example = uploadExample) => ({
    200: { description, content: json(uploadRecord, example) },
  })
  return [
    endpoint({
      method: 'POST',
      path: '/v1/uploads',
      ...common,
      summary: 'Create an upload',
      description: `For a file that is sent in parts. The upload expires after an hour. A file of the announced
size exists once the upload is completed; what is left of other uploads is removed.`,
      body: jsonBody(newUpload, {
        example: {
          filename: 'report.pdf',
          purpose: 'user_data',
          bytes: uploadExample.bytes,
          mime_type: 'application/pdf',
        },
      }),
      responses: uploadResponse('The pending upload.'),
      errors: {
        request_too_large,
        rate_limit_exceeded: '1000 uploads are pending.',
        unprocessable: invalidName,
        unknown_field: '"colour" is not a known field.',
      },
      handle: ({ body, context }) => uploads.create(context.principal, body),
    }),
    endpoint({
      method: 'POST',
      path: '/v1/uploads/:id/parts',
      ...common,
      summary: 'Add a part to an upload',
      description: `As a form with at most ${partBytesMax} bytes in \`data\`. Parts may be sent in any order and
at the same time; all parts together have at most the maximum size of a file.`,
      params: uploadId,
      body: rawBody(form(Type.Object({ data: Type.String({ format: 'binary' }) }))),
      responses: {
        200: { description: 'The part.', content: json(uploadPartRecord, partExample) },
      },
      errors: {
        ...uploadErrors,
        invalid_request: [notPending, 'The body is not a complete multipart form.'],
        not_found: notFound,
        unprocessable: 'The form has no file.',
        unknown_field: '"colour" is not a known field.',
      },
      async handle({ params, context, request }) {
        const { principal } = context
        await uploads.requirePending(principal, params.id)
        const { fields, content } = await receive(request, { ...part, userId: principal.userId })
        for (const field of fields?.keys() ?? []) throw unknownField(field)
        return uploads.addPart(principal, params.id, content)
      },
    }),
    endpoint({
      method: 'POST',
      path: '/v1/uploads/:id/complete',
      ...common,
      summary: 'Complete an upload',
      description: `Joins the parts to a file at the top level of the caller's own tree. They must have the
announced size together. After a failure the upload is still pending; a repeated request returns the same file.`,
      params: uploadId,
      body: jsonBody(uploadCompletion, { example: { part_ids: [partExample.id] } }),
      responses: uploadResponse('The completed upload with its file.', completedExample),
      errors: {
        invalid_request: [
          'The parts have 5 bytes; the upload was created for 48213.',
          'The file has the MD5 checksum 5d41402abc4b2a76b9719d911017c592.',
          notPending,
        ],
        not_found: notFound,
        unprocessable: tooManyFiles,
        unknown_field: '"colour" is not a known field.',
        service_unavailable,
        insufficient_storage,
        too_many_streams,
      },
      handle: ({ params, body, context }) =>
        uploads.complete(actingPrincipal(context), params.id, body, context.signal),
    }),
    endpoint({
      method: 'POST',
      path: '/v1/uploads/:id/cancel',
      ...common,
      summary: 'Cancel an upload',
      params: uploadId,
      responses: uploadResponse('The cancelled upload.', { ...uploadExample, status: 'cancelled' }),
      errors: { invalid_request: 'The upload is completed.', not_found: notFound },
      handle: ({ params, context }) => uploads.cancel(context.principal, params.id),
    }),
  ]
}
