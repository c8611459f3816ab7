import { type Endpoint, type EndpointInput, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { hasEnded, messagesPath } from '#batches/batches.ts'
import { type Batches, batchNotFound } from '#batches/service.ts'
import type { Config } from '#config/schema.ts'
import { endWhenSent } from '#http/sent-body.ts'
import type { ClientAddresses } from '#lib/client-address.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Storage } from '#storage/storage.ts'
import { idPage, pageQuery } from './page-query.ts'
import { readNewMessageBatch } from './parse-batch.ts'
import { forwardedHeaders } from './request-headers.ts'
import {
  deletedMessageBatch,
  messageBatch,
  messageBatchResult,
  newMessageBatch,
  renderMessageBatch,
} from './schema/batches.ts'
import { exampleRequest } from './schema/examples.ts'
import { requestHeaders } from './schema/request.ts'

type MessageBatchDeps = {
  batches: Batches
  storage: Pick<Storage, 'read'>
  clientAddresses: ClientAddresses
  config: Pick<Config, 'batches' | 'login'>
}

/** Clients append `/v1/messages/batches` or `/messages/batches` to a base URL that may end in `/v1`. */
const paths = [
  '/compat/v1/messages/batches',
  '/compat/messages/batches',
  '/compat/v1/v1/messages/batches',
]
const api = { isMessages: true } as const
/** Seconds without reading after which a client is disconnected; the longest timeout of Bun. */
const resultsTimeoutS = 255

/** Batches of messages. */
export function messageBatchEndpoints(deps: MessageBatchDeps): Endpoint[] {
  return paths.flatMap((path) => [
    createEndpoint(path, deps),
    listEndpoint(path, deps),
    retrieveEndpoint(path, deps),
    cancelEndpoint(path, deps),
    resultsEndpoint(path, deps),
    deleteEndpoint(path, deps),
  ])
}

type Asked = Pick<EndpointInput<unknown, unknown, unknown, RequestContext>, 'request' | 'server'>

/** Renders batches with links for the client of a request. */
function rendererFor({ clientAddresses, config }: MessageBatchDeps, { request, server }: Asked) {
  const origin = clientAddresses.originOf(request, server)
  const { publicUrl } = config.login
  const isPublic = publicUrl !== undefined && new URL(publicUrl).host === new URL(origin).host
  // Behind a proxy that is not trusted, only the public address says that the client uses https.
  const base = isPublic ? new URL(publicUrl).origin : origin
  return (batch: Parameters<typeof renderMessageBatch>[0]) => renderMessageBatch(batch, base)
}

function createEndpoint(path: string, deps: MessageBatchDeps): Endpoint {
  return endpoint({
    ...common,
    method: 'POST',
    path,
    summary: 'Create a batch of messages',
    description:
      'Runs the requests in the background, with the rights, limits and budgets of the caller and the lowest priority. A batch may have 50,000 requests by default, within the size of a request body.',
    headers: requestHeaders,
    body: jsonBody(newMessageBatch, { example: exampleBody, read: unparsed }),
    responses: { 200: batchResponse('The batch.') },
    errors: {
      invalid_request: [
        'requests.1.custom_id: is used by an earlier request',
        'requests: may have 50000 requests',
      ],
      rate_limit_exceeded: 'You have 100 unfinished batches, which is the limit.',
      service_unavailable: 'The content was not stored; send it again.',
      insufficient_storage: 'The storage is full.',
    },
    async handle({ body, context, request, server }) {
      const lines = readNewMessageBatch(body, deps.config.batches)
      const batch = await deps.batches.createFromLines(context, {
        lines: lines.map((line) => JSON.stringify(line)),
        total: lines.length,
        endpoint: messagesPath,
        headers: forwardedHeaders(request.headers),
        metadata: null,
        outputLifetimeS: null,
      })
      return rendererFor(deps, { request, server })(batch)
    },
  })
}

function listEndpoint(path: string, deps: MessageBatchDeps): Endpoint {
  return endpoint({
    ...common,
    method: 'GET',
    path,
    summary: 'List your batches of messages',
    description: 'Newest first.',
    query: pageQuery('batches'),
    responses: {
      200: {
        description: 'A page of batches.',
        content: json(batchPage, {
          data: [exampleBatch],
          has_more: false,
          first_id: exampleBatch.id,
          last_id: exampleBatch.id,
        }),
      },
    },
    errors: { invalid_request: 'after_id must be the id of one of your batches.' },
    async handle({ query: { limit, afterId, beforeId }, context, request, server }) {
      const id = afterId ?? beforeId
      const isBefore = beforeId !== null
      const { items, hasMore } = await deps.batches.list(context, {
        ...api,
        limit,
        cursor: id === null ? null : { id, isBefore },
        cursorParam: isBefore ? 'before_id' : 'after_id',
      })
      const data = items.map(rendererFor(deps, { request, server }))
      return {
        data,
        has_more: hasMore,
        first_id: data[0]?.id ?? null,
        last_id: data.at(-1)?.id ?? null,
      }
    },
  })
}

function retrieveEndpoint(path: string, deps: MessageBatchDeps): Endpoint {
  return endpoint({
    ...common,
    method: 'GET',
    path: `${path}/:id`,
    summary: 'Retrieve a batch of messages',
    params: idParam,
    responses: { 200: batchResponse('The batch.') },
    errors: { not_found: notFound },
    handle: async ({ params, context, request, server }) =>
      rendererFor(deps, { request, server })(await deps.batches.find(context, api, params.id)),
  })
}

function cancelEndpoint(path: string, deps: MessageBatchDeps): Endpoint {
  return endpoint({
    ...common,
    method: 'POST',
    path: `${path}/:id/cancel`,
    summary: 'Cancel a batch of messages',
    description: 'Requests in progress are aborted. The results have what was answered before.',
    params: idParam,
    responses: { 200: batchResponse('The batch.') },
    errors: {
      not_found: notFound,
      conflict: {
        code: 'batch_not_cancellable',
        message: 'A batch with status completed cannot be cancelled.',
      },
    },
    handle: async ({ params, context, request, server }) =>
      rendererFor(deps, { request, server })(await deps.batches.cancel(context, api, params.id)),
  })
}

function resultsEndpoint(path: string, { batches, storage }: MessageBatchDeps): Endpoint {
  return endpoint({
    ...common,
    method: 'GET',
    path: `${path}/:id/results`,
    summary: 'Retrieve the results of a batch of messages',
    description: 'One result per line, in any order.',
    params: idParam,
    responses: {
      200: {
        description: 'The results.',
        content: { [jsonLines]: { schema: messageBatchResult } },
      },
    },
    errors: { not_found: notFound, invalid_request: notEnded },
    async handle({ params, context, request, server }) {
      const batch = await batches.find(context, api, params.id)
      if (!hasEnded(batch)) throw new AppError('invalid_request', notEnded)
      if (batch.resultsSha256 === null) throw batchNotFound(params.id)
      server?.timeout(request, resultsTimeoutS)
      const content = await storage.read(batch.resultsSha256)
      if (server !== null) endWhenSent(request, server, context.exchange)
      return new Response(content, { headers: { 'content-type': jsonLines } })
    },
  })
}

function deleteEndpoint(path: string, { batches }: MessageBatchDeps): Endpoint {
  return endpoint({
    ...common,
    method: 'DELETE',
    path: `${path}/:id`,
    summary: 'Delete a batch of messages',
    description: 'A batch that has ended, with its results.',
    params: idParam,
    responses: {
      200: {
        description: 'The batch is deleted.',
        content: json(deletedMessageBatch, { id: exampleId, type: 'message_batch_deleted' }),
      },
    },
    errors: {
      not_found: notFound,
      invalid_request: 'The batch has not ended; cancel it first.',
    },
    async handle({ params, context }) {
      await batches.remove(context, api, params.id)
      return { id: params.id, type: 'message_batch_deleted' }
    },
  })
}

/** Its requests are read one by one, by the dialect of the headers. */
function unparsed(body: unknown): unknown {
  return body
}

const common = { permission: 'can_access_api', tag: 'Messages' } as const
const idParam = { id: 'The id of the batch.' }
const jsonLines = 'application/x-jsonl'
const notEnded = 'The batch has no results yet: it has not ended.'
const exampleId = 'msgbatch_3w6bzphnjs2m7q4k9x1c8v5r0t'
const notFound = batchNotFound(exampleId).message

const exampleBody = { requests: [{ custom_id: 'first', params: exampleRequest }] }

const exampleBatch = {
  id: exampleId,
  type: 'message_batch',
  processing_status: 'ended',
  request_counts: { processing: 0, succeeded: 1, errored: 0, canceled: 0, expired: 0 },
  created_at: '2026-11-21T09:30:00.000Z',
  ended_at: '2026-11-21T09:31:00.000Z',
  expires_at: '2026-11-22T09:30:00.000Z',
  cancel_initiated_at: null,
  archived_at: null,
  results_url: `https://sluice.example.com/compat/v1/messages/batches/${exampleId}/results`,
} as const

const batchPage = idPage(messageBatch, 'MessageBatchPage')

function batchResponse(description: string) {
  return { description, content: json(messageBatch, exampleBatch) }
}
