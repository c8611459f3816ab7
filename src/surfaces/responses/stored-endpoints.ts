import { type Endpoint, endpoint, eventStream, json } from '#api/endpoint.ts'
import { deletedResponse, pageResponse } from '#api/shapes.ts'
import type { Config } from '#config/schema.ts'
import { streamEvents } from '#http/event-stream.ts'
import { followSignal } from '#lib/deadline.ts'
import type { ResponseRuns } from '#responses/runs.ts'
import type { ResponseStore } from '#responses/store.ts'
import type { Log } from '#telemetry/log.ts'
import { doneFrame } from './frames.ts'
import { itemsQuery, orNotFound, renderPage, streamQuery } from './query.ts'
import { eventsDescription, streamEvent } from './schema/events.ts'
import { exampleIds, exampleInputItem, exampleResponse, exampleStream } from './schema/examples.ts'
import { storedItem } from './schema/input-items.ts'
import { responseObject } from './schema/response-object.ts'
import { showResponse } from './show.ts'
import { frameSource, queuedKeepAlive } from './start-response.ts'

/** Stored responses. Those of other users are not found. */
export function storedResponseEndpoints({
  runs,
  responses,
  config,
  log,
}: {
  runs: ResponseRuns
  responses: Pick<ResponseStore, 'listInputItems'>
  config: Pick<Config, 'stream'>
  log: Log
}): Endpoint[] {
  return [
    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/responses/:id',
      summary: 'Retrieve or stream a stored response',
      description: `Returns the response in its current state, or streams its events: the logged ones, then new ones until
the end, so a disconnected client can resume. While a response is queued, comments (\`: waiting\`) keep the
connection alive. By default events are kept for one day after the end. Log probabilities cannot be
requested later.

${eventsDescription}`,
      params: idParam,
      query: streamQuery,
      responses: {
        200: {
          description: 'The response.',
          content: {
            ...json(responseObject, exampleResponse),
            ...eventStream(streamEvent, exampleStream(8)),
          },
        },
      },
      errors: {
        invalid_request: 'starting_after requires stream=true.',
        not_found: [
          responseNotFound,
          {
            code: 'stream_expired',
            message: 'The stream of this response has expired.',
          },
        ],
      },
      async handle({ params: { id }, query, context, request, server }) {
        const { userId } = context.principal
        if (!query.stream) {
          return showResponse(
            orNotFound('Response', await runs.find(userId, id), id),
            query.include,
          )
        }
        server?.timeout(request, 0)
        const { controller } = followSignal(context.signal)
        const from = { startingAfter: query.startingAfter, signal: controller.signal }
        const frames = orNotFound('Response', await runs.watch(userId, id, from), id)
        const source = frameSource(frames, { controller, context, log }, queuedKeepAlive)
        return streamEvents(source, {
          ...config.stream,
          closing: doneFrame,
          context,
        })
      },
    }),

    endpoint({
      ...common,
      method: 'DELETE',
      path: '/v1/responses/:id',
      summary: 'Delete a stored response',
      description:
        'A running response is cancelled. Responses that continue it can be retrieved, but no longer continued.',
      params: idParam,
      responses: {
        200: deletedResponse('The response is deleted.', 'response.deleted', exampleIds.response),
      },
      errors: { not_found: responseNotFound },
      async handle({ params: { id }, context }) {
        orNotFound('Response', await runs.remove(context.principal.userId, id), id)
        return { id, object: 'response.deleted', deleted: true }
      },
    }),

    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/responses/:id/cancel',
      summary: 'Cancel a response',
      description:
        'Whether it runs in the background or not. A response that has ended does not change.',
      params: idParam,
      responses: {
        200: {
          description: 'The response after its end.',
          content: json(responseObject, { ...exampleResponse, status: 'cancelled' }),
        },
      },
      errors: { not_found: responseNotFound },
      handle: async ({ params: { id }, context }) =>
        showResponse(
          orNotFound('Response', await runs.cancel(context.principal.userId, id), id),
          [],
        ),
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/responses/:id/input_items',
      summary: 'List the input items of a stored response',
      description: 'The items that were sent with the request, without its history.',
      params: idParam,
      query: itemsQuery,
      responses: { 200: pageResponse('A page of items.', storedItem, exampleInputItem) },
      errors: {
        not_found: responseNotFound,
        invalid_request: 'limit must be an integer from 1 to 100.',
      },
      async handle({ params: { id }, query, context }) {
        const page = await responses.listInputItems(context.principal.userId, id, query.page)
        return renderPage(orNotFound('Response', page, id), query.include)
      },
    }),
  ]
}

const common = { permission: 'can_access_api', tag: 'Responses' } as const
const idParam = { id: 'The id of the response.' }
const responseNotFound = `Response with id "${exampleIds.response}" not found.`
