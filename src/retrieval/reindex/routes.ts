import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { streamEvents } from '#http/event-stream.ts'
import { eventFrame } from '#http/frame-text.ts'
import { followSignal } from '#lib/deadline.ts'
import { entityTag, isKnown } from '#lib/entity-tag.ts'
import { renderPage } from '#retrieval/collections/render.ts'
import { readPage } from '#retrieval/collections/schema.ts'
import { actionOperations, reindexOperations } from './operations.ts'
import { isEnded, type Reindex, type ReindexAction, type Reindexes } from './reindex.ts'
import { renderEstimate, renderFailure, renderReindex } from './render.ts'
import { readReindex, readStatus } from './schema.ts'

export type ReindexRoutesDeps = {
  auth: Auth
  reindexes: Reindexes
  config: Pick<Config, 'limits' | 'stream'>
}

const permission = 'can_edit_config'

/** Bringing collections into another embedding space while they are in use. */
export function reindexRoutes(deps: ReindexRoutesDeps) {
  const { auth, reindexes, config } = deps
  return new Elysia({ name: 'reindexes', prefix: '/v1/embeddings/reindex' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, request, set }) => {
        const { wish, isDryRun } = readReindex(await readJsonBody(request, config.limits))
        if (isDryRun) return renderEstimate(await reindexes.estimate(wish, request.signal))
        const started = await reindexes.start(principal.userId, wish, request.signal)
        set.status = 202
        return renderReindex(started)
      },
      { requires: permission, parse: 'none', detail: reindexOperations.start },
    )
    .get(
      '/',
      async ({ query }) => {
        const page = await reindexes.list(readPage(query), readStatus(query))
        return renderPage(page, renderReindex, ({ id }) => id)
      },
      { requires: permission, detail: reindexOperations.list },
    )
    .get(
      '/:id',
      async ({ params: { id }, request }) => showTagged(await reindexes.find(id), request),
      { requires: permission, detail: reindexOperations.find },
    )
    .get(
      '/:id/events',
      async ({ params: { id }, request, server }) => {
        server?.timeout(request, 0)
        return streamProgress(deps, id, request.signal)
      },
      { requires: permission, detail: reindexOperations.watch },
    )
    .get(
      '/:id/failures',
      async ({ params: { id }, query }) => {
        const page = await reindexes.failures(id, readPage(query))
        return renderPage(page, renderFailure, ({ fileId }) => fileId)
      },
      { requires: permission, detail: reindexOperations.failures },
    )
    .use(actionRoutes(deps))
}

function actionRoutes({ auth, reindexes }: ReindexRoutesDeps) {
  const app = new Elysia({ name: 'reindex-actions', prefix: '/:id' }).use(guard(auth))
  for (const [action, detail] of Object.entries(actionOperations)) {
    app.post(
      `/${action}`,
      async ({ params: { id }, set }) => {
        const reindex = await reindexes.act(id, action as ReindexAction)
        set.status = isEnded(reindex.status) ? 200 : 202
        return renderReindex(reindex)
      },
      { requires: permission, parse: 'none', detail },
    )
  }
  return app
}

/** The counters change without a version of theirs, so the tag is made of the whole. */
function showTagged(reindex: Reindex, request: Request): Response {
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

async function streamProgress(
  { reindexes, config }: ReindexRoutesDeps,
  id: string,
  signal: AbortSignal,
): Promise<Response> {
  const { controller } = followSignal(signal)
  return streamEvents(
    {
      items: await reindexes.watch(id, controller.signal),
      render: (reindex) => eventFrame('progress', renderReindex(reindex)),
      fail: ({ message, wireCode }) =>
        eventFrame('error', { error: { message, code: wireCode, param: null } }),
      // Something is told each second.
      life: null,
      commit() {},
      abandon: () => controller.abort(),
    },
    { ...config.stream, closing: '' },
  )
}
