import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { streamEvents } from '#http/event-stream.ts'
import { requestIdOf } from '#http/request-lifecycle.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import type { Page, PageRequest, StoredItem } from '#responses/response.ts'
import type { ResponseRuns } from '#responses/runs.ts'
import { quote } from '#surfaces/read-object.ts'
import type { Log } from '#telemetry/log.ts'
import { storedOperations } from './description/stored-operations.ts'
import { doneFrame } from './frames.ts'
import { readInclude, readPage, readStreamQuery, renderPage } from './query.ts'
import { showItem, showResponse } from './show.ts'
import { readFrames, waitingLife } from './stored-turn.ts'

export type StoredRoutesDeps = {
  auth: Auth
  runs: ResponseRuns
  listInputItems(
    ownerId: string,
    id: string,
    page: PageRequest,
  ): Promise<Page<StoredItem> | undefined>
  config: Pick<Config, 'stream'>
  log: Log
}

const requires = 'can_access_api' satisfies Permission

/** `/v1/responses/{id}`: responses that were stored. What is another's is not found. */
export function storedResponseRoutes({
  auth,
  runs,
  listInputItems,
  config,
  log,
}: StoredRoutesDeps) {
  return new Elysia({ name: 'stored-responses', prefix: '/v1/responses' })
    .use(guard(auth))
    .get(
      '/:id',
      async ({ params: { id }, principal, request, server, set }) => {
        const query = new URL(request.url).searchParams
        const { stream, startingAfter } = readStreamQuery(query)
        const include = readInclude(query)
        if (!stream) {
          return showResponse(orAbsent(await runs.find(principal.userId, id), id), include)
        }
        server?.timeout(request, 0)
        const { controller } = followSignal(request.signal)
        const from = { startingAfter, signal: controller.signal }
        const frames = orAbsent(await runs.watch(principal.userId, id, from), id)
        const reader = { controller, requestId: requestIdOf(set), log }
        const source = readFrames(frames, reader, waitingLife)
        return streamEvents(source, { ...config.stream, closing: doneFrame })
      },
      { requires, detail: storedOperations.show },
    )
    .delete(
      '/:id',
      async ({ params: { id }, principal }) => {
        if (!(await runs.remove(principal.userId, id))) throw absent(id)
        return { id, object: 'response.deleted', deleted: true }
      },
      { requires, detail: storedOperations.remove },
    )
    .post(
      '/:id/cancel',
      async ({ params: { id }, principal }) =>
        showResponse(orAbsent(await runs.cancel(principal.userId, id), id), []),
      { requires, parse: 'none', detail: storedOperations.cancel },
    )
    .get(
      '/:id/input_items',
      async ({ params: { id }, principal, request }) => {
        const query = new URL(request.url).searchParams
        const page = await listInputItems(principal.userId, id, readPage(query))
        const include = readInclude(query)
        return renderPage(orAbsent(page, id), (item) => showItem(item, include))
      },
      { requires, detail: storedOperations.inputItems },
    )
}

function orAbsent<T>(found: T | undefined, id: string): T {
  if (found === undefined) throw absent(id)
  return found
}

function absent(id: string): AppError {
  return new AppError('not_found', `Response with id ${quote(id)} not found.`, {
    param: 'response_id',
  })
}
