import { withNulls } from '#api/described.ts'
import { type Endpoint, type Errors, endpoint, eventStream, json, jsonBody } from '#api/endpoint.ts'
import { idExample, ifNoneMatchHeader, listOf, listPage, pageResponse } from '#api/shapes.ts'
import type { Config } from '#config/schema.ts'
import { streamEvents } from '#http/event-stream.ts'
import { eventFrame } from '#http/frame-text.ts'
import { followSignal } from '#lib/deadline.ts'
import { entityTag, isKnown } from '#lib/entity-tag.ts'
import { filePage } from '#retrieval/collections/record.ts'
import { orderedPageQuery, pageRequestOf } from '#retrieval/collections/schema.ts'
import type { Reindexes } from './create-reindexes.ts'
import type { Reindex } from './progress.ts'
import {
  failureExample,
  progressEvent,
  progressExample,
  reindexEstimate,
  reindexExample,
  reindexFailure,
  reindexRecord,
  renderReindex,
} from './record.ts'
import { isEnded, type ReindexAction } from './reindex.ts'
import { readReindex, reindexBody, reindexesQuery } from './schema.ts'

/** Moving collections to another embedding model while they are in use. */
export function reindexEndpoints({
  reindexes,
  config,
}: {
  reindexes: Reindexes
  config: Pick<Config, 'stream'>
}): Endpoint[] {
  const actionEndpoint = (action: ReindexAction, details: ActionDetails) =>
    endpoint({
      ...common,
      method: 'POST',
      path: `/v1/embeddings/reindex/:id/${action}`,
      summary: details.summary,
      description: `${details.description} Succeeds without effect if there is nothing to change.`,
      params: idParam,
      responses: {
        202: reindexResponse('The action is in progress.'),
        200: reindexResponse('The reindex has ended.'),
      },
      errors: { not_found: reindexNotFound, conflict: wrongStatus, ...details.errors },
      async handle({ params: { id }, context, set }) {
        const reindex = await reindexes.act(context, id, action)
        set.status = isEnded(reindex.status) ? 200 : 202
        return renderReindex(reindex)
      },
    })

  return [
    endpoint({
      ...common,
      method: 'POST',
      path: '/v1/embeddings/reindex',
      summary: 'Start a reindex',
      description: `Moves collections to another embedding model or chunking while they stay in use. Files are embedded into
a new index one by one; each is searched in the source until it is in the target. New files go to the target directly.

The model is called once before the start. With \`dry_run\` only the effort is estimated (status 200).`,
      body: jsonBody(withNulls(reindexBody), {
        example: {
          embedding_model: 'local-hash',
          collections: ['handbooks'],
          chunking: { max_tokens: 200, overlap_tokens: 20 },
          dry_run: true,
        },
        read: readReindex,
      }),
      responses: {
        202: reindexResponse('The reindex was started.'),
        200: {
          description: 'The estimate of a dry run.',
          content: json(reindexEstimate, {
            total: 980,
            est_tokens: 1_250_000,
            est_seconds: 610,
            dims: 1_024,
          }),
        },
      },
      errors: {
        unprocessable: invalidReindex,
        unknown_field: '"model" is not a known field.',
        conflict: alreadyRunning,
        upstream_error: {
          code: 'embedding_probe_failed',
          message: 'The probe of "embed-large" failed: The upstream could not be reached.',
        },
      },
      async handle({ body: { params, isDryRun }, context, set }) {
        if (isDryRun) return reindexes.estimate(context, params)
        const reindex = await reindexes.start(context, params)
        set.status = 202
        return renderReindex(reindex)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/embeddings/reindex',
      summary: 'List the reindexes',
      query: reindexesQuery,
      responses: {
        200: pageResponse('A page of reindexes.', reindexRecord, reindexExample),
      },
      errors: { unprocessable: invalidPage },
      async handle({ query: { status = null, ...query } }) {
        const page = await reindexes.list(pageRequestOf(query), status)
        return listPage(page.items.map(renderReindex), page.hasMore)
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/embeddings/reindex/:id',
      summary: 'Retrieve a reindex',
      params: idParam,
      headers: ifNoneMatchHeader,
      responses: {
        200: {
          ...reindexResponse('The reindex.'),
          headers: { etag: 'A hash of the response.' },
        },
        304: { description: 'The reindex has not changed.' },
      },
      errors: { not_found: reindexNotFound },
      handle: async ({ params: { id }, request }) =>
        taggedResponse(await reindexes.find(id), request),
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/embeddings/reindex/:id/events',
      summary: 'Stream the progress of a reindex',
      description:
        'Sends an event `progress` at once, every second and at each change of status, and ends with the reindex. An event `error` ends the stream early. Each worker serves up to 16 streams.',
      params: idParam,
      responses: {
        200: {
          description: 'Events.',
          content: eventStream(progressEvent, progressExample),
        },
      },
      errors: {
        not_found: reindexNotFound,
        too_many_streams: 'Too many progress streams on this worker; try again later.',
      },
      async handle({ params: { id }, context, request, server }) {
        server?.timeout(request, 0)
        const { controller } = followSignal(context.signal)
        return streamEvents(
          {
            items: await reindexes.watch(id, controller.signal),
            renderer: { push: (reindex) => eventFrame('progress', renderReindex(reindex)) },
            fail: ({ message, wireCode }) =>
              eventFrame('error', { error: { message, code: wireCode, param: null } }),
            // An event every second makes heartbeats unnecessary.
            keepAlive: null,
            abandon: () => controller.abort(),
          },
          { ...config.stream, closing: '', context },
        )
      },
    }),

    endpoint({
      ...common,
      method: 'GET',
      path: '/v1/embeddings/reindex/:id/failures',
      summary: 'List the failed files of a reindex',
      params: idParam,
      query: orderedPageQuery,
      responses: {
        200: {
          description: 'A page of files.',
          content: json(listOf(reindexFailure), filePage([failureExample], false)),
        },
      },
      errors: { not_found: reindexNotFound, unprocessable: invalidPage },
      async handle({ params: { id }, query }) {
        const { items, hasMore } = await reindexes.failures(id, pageRequestOf(query))
        return filePage(items, hasMore)
      },
    }),

    actionEndpoint('cancel', {
      summary: 'Cancel a reindex',
      description: 'Moves all files back to the source.',
    }),
    actionEndpoint('pause', {
      summary: 'Pause a reindex',
      description: 'Files in progress are completed.',
    }),
    actionEndpoint('resume', {
      summary: 'Resume a reindex',
      description: 'Continues a paused reindex.',
    }),
    actionEndpoint('retry', {
      summary: 'Retry the failed files of a reindex',
      description: 'Processes each of them again.',
    }),
    actionEndpoint('accept', {
      summary: 'Accept the failures of a reindex',
      description: 'Completes the reindex; failed files are no longer found.',
    }),
    actionEndpoint('revert', {
      summary: 'Revert a reindex',
      description: 'Moves all files back to the source, while it is retained.',
      errors: {
        conflict: [
          wrongStatus,
          alreadyRunning,
          {
            code: 'reindex_superseded',
            message: 'The collections have moved to another index since.',
          },
        ],
        gone: { code: 'source_dropped', message: 'The source index is no longer retained.' },
      },
    }),
  ]
}

type ActionDetails = { summary: string; description: string; errors?: Errors }

/** The counters change without a version, so the tag is a hash of the body. */
function taggedResponse(reindex: Reindex, request: Request): Response {
  const body = JSON.stringify(renderReindex(reindex))
  const tag = new Bun.CryptoHasher('sha256').update(body).digest('base64url')
  const headers = {
    etag: entityTag(tag),
    'cache-control': 'private, no-cache',
    'content-type': 'application/json',
  }
  const isUnchanged = isKnown(request.headers.get('if-none-match'), tag)
  if (isUnchanged) return new Response(null, { status: 304, headers })
  return new Response(body, { headers })
}

const common = { permission: 'can_edit_config', tag: 'Embeddings' } as const
const idParam = { id: 'The id of the reindex.' }
function reindexResponse(description: string) {
  return { description, content: json(reindexRecord, reindexExample) }
}

const reindexNotFound = `There is no reindex with the id "${idExample}".`
const invalidPage = '"limit" must be a whole number from 1 to 100.'
const alreadyRunning = {
  code: 'reindex_running',
  message: 'A reindex of the collection "handbooks" is running.',
}
const wrongStatus = {
  code: 'reindex_state',
  message: 'A reindex of status completed does not accept "pause".',
}
const invalidReindex = [
  { code: 'model_not_found', message: 'The model "embed-large" does not exist.' },
  {
    code: 'model_mode_mismatch',
    message: 'The model "demo" has mode generate; mode embed is required.',
  },
  {
    code: 'too_many_dimensions',
    message: 'The vectors of "embed-large" have 20000 dimensions; the maximum is 16000.',
  },
  { code: 'collection_not_found', message: 'There is no collection "handbook".' },
  {
    code: 'several_source_indexes',
    message:
      'These collections are in 2 indexes, each of which needs its own reindex: handbooks; letters.',
  },
  {
    code: 'already_current',
    message: 'The collections already use "embed-large" with this chunking.',
  },
]
