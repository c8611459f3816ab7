import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { idExample, instantExample, listOf, renderPage } from '#api/shapes.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import { batchObject, newBatch, readNewBatch, renderBatch } from './schema.ts'
import { type Batches, batchNotFound } from './service.ts'

const api = { isMessages: false } as const

/** Batches of requests in a file, for OpenAI's packages. */
export function batchEndpoints({ batches }: { batches: Batches }): Endpoint[] {
  return [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/batches',
      summary: 'Create a batch',
      description: `Runs the requests of a file in the background, with the rights, limits and budgets of the caller and the lowest
priority. Each line of the file is an object with \`custom_id\`, \`method\` (\`POST\`), \`url\` (the endpoint of the batch)
and \`body\`. A file may have 50,000 lines and 200 MB by default. A batch with an invalid line fails before any
request runs.`,
      body: jsonBody(newBatch, { example: exampleRequest, read: readNewBatch }),
      responses: { 200: batchResponse('The batch, which is validated next.') },
      errors: {
        invalid_request: [
          'endpoint must be one of /v1/responses, /v1/embeddings.',
          {
            code: 'file_too_large',
            message: 'input_file_id must name a file of at most 209715200 bytes.',
          },
        ],
        not_found: `There is no file with the id "${idExample}".`,
        rate_limit_exceeded: 'You have 100 unfinished batches, which is the limit.',
        service_unavailable: 'The content was not stored; send it again.',
      },
      handle: async ({ body, context }) => renderBatch(await batches.createFromFile(context, body)),
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/batches',
      summary: 'List your batches',
      description: 'Newest first.',
      query: pageQuery,
      responses: {
        200: {
          description: 'A page of batches.',
          content: json(listOf(batchObject), {
            object: 'list',
            data: [exampleBatch],
            has_more: false,
            first_id: exampleBatch.id,
            last_id: exampleBatch.id,
          }),
        },
      },
      errors: {
        invalid_request: 'after must be the id of one of your batches.',
        unprocessable: '"limit" must be a whole number from 1 to 100.',
      },
      async handle({ query: { limit, after }, context }) {
        const cursor = after === undefined ? null : { id: after, isBefore: false }
        const page = await batches.list(context, { ...api, limit, cursor, cursorParam: 'after' })
        return renderPage(page, renderBatch)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/batches/:id',
      summary: 'Retrieve a batch',
      params: idParam,
      responses: { 200: batchResponse('The batch.') },
      errors: { not_found: notFound },
      handle: async ({ params, context }) =>
        renderBatch(await batches.find(context, api, params.id)),
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/batches/:id/cancel',
      summary: 'Cancel a batch',
      description:
        'Requests in progress are aborted. The files have what was answered before; the requests without an answer are in the error file.',
      params: idParam,
      responses: { 200: batchResponse('The batch, whose files are written next.') },
      errors: {
        not_found: notFound,
        conflict: {
          code: 'batch_not_cancellable',
          message: 'A batch with status completed cannot be cancelled.',
        },
      },
      handle: async ({ params, context }) =>
        renderBatch(await batches.cancel(context, api, params.id)),
    }),
  ]
}

const common = { permission: 'can_access_api', tag: 'Batches' } as const
const idParam = { id: 'The id of the batch.' }

const pageQuery = Type.Object({
  limit: Type.Integer({ description: 'Items per page.', minimum: 1, maximum: 100, default: 20 }),
  after: Type.Optional(
    Type.String({ description: 'The id of the last batch of the previous page.', maxLength: 128 }),
  ),
})

const exampleRequest = {
  input_file_id: idExample,
  endpoint: '/v1/responses',
  completion_window: '24h',
  metadata: { project: 'catalogue' },
}

const createdAt = unixSeconds(new Date(instantExample))
const exampleBatch = {
  id: 'batch_3w6bzphnjs2m7q4k9x1c8v5r0t',
  object: 'batch',
  endpoint: '/v1/responses',
  model: 'llama-3.3-70b',
  errors: null,
  input_file_id: idExample,
  completion_window: '24h',
  status: 'completed',
  output_file_id: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a61',
  error_file_id: null,
  created_at: createdAt,
  in_progress_at: createdAt + 1,
  expires_at: createdAt + 86_400,
  finalizing_at: createdAt + 60,
  completed_at: createdAt + 61,
  failed_at: null,
  expired_at: null,
  cancelling_at: null,
  cancelled_at: null,
  request_counts: { total: 3, completed: 3, failed: 0 },
  usage: {
    input_tokens: 42,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 96,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 138,
  },
  metadata: { project: 'catalogue' },
} as const

const notFound = batchNotFound(exampleBatch.id).message

function batchResponse(description: string) {
  return { description, content: json(batchObject, exampleBatch) }
}
