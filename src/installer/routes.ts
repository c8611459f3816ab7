import { Elysia } from 'elysia'
import { actorOf } from '#audit/actor.ts'
import type { Audit } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Principal } from '#auth/principal.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { streamEvents } from '#http/event-stream.ts'
import { eventFrame } from '#http/frame-text.ts'
import { followSignal } from '#lib/deadline.ts'
import type { AlreadyInstalled, DownloadRecord } from './answer-schema.ts'
import {
  type Download,
  type DownloadAction,
  type DownloadNews,
  type Installer,
  isTerminal,
} from './installer.ts'
import { modelLibraryRoutes } from './model-routes.ts'
import { actionOperations, downloadOperations } from './operations.ts'
import { renderDownload, renderLine, renderLines, renderModel } from './render.ts'
import { readAfterSeq, readInstall, readLinePage } from './schema.ts'

export type InstallerRoutesDeps = {
  auth: Auth
  installer: Installer
  audit: Pick<Audit, 'record'>
  config: Pick<Config, 'limits' | 'stream'>
}

const requires = 'can_manage_models'

/** Bringing models onto this machine, and what is installed on it. */
export function installerRoutes(deps: InstallerRoutesDeps) {
  return new Elysia({ name: 'model-installer', prefix: '/v1/model-installer' })
    .use(downloadRoutes(deps))
    .use(actionRoutes(deps))
    .use(modelLibraryRoutes(deps))
}

function downloadRoutes(deps: InstallerRoutesDeps) {
  const { auth, config, installer } = deps
  const { downloads } = installer
  return new Elysia({ name: 'model-downloads', prefix: '/downloads' })
    .use(guard(auth))
    .get(
      '/',
      async () => ({ object: 'list', data: (await downloads.list()).map(renderDownload) }),
      { requires, detail: downloadOperations.list },
    )
    .post(
      '/',
      async ({ principal, request, set }) => {
        const body = await readJsonBody(request, config.limits)
        const { answer, isNew } = await start(deps, { principal, body, request, set })
        if (isNew) set.status = 202
        return answer
      },
      { requires, parse: 'none', detail: downloadOperations.start },
    )
    .get(
      '/:download_id',
      async ({ params: { download_id: id } }) => renderDownload(await downloads.find(id)),
      { requires, detail: downloadOperations.find },
    )
    .delete(
      '/:download_id',
      async ({ params: { download_id: id }, principal, set }) => {
        const download = await downloads.discard(id)
        await record(deps, { principal, set, download, action: 'discard' })
        return renderDownload(download)
      },
      { requires, detail: downloadOperations.discard },
    )
    .get(
      '/:download_id/logs',
      async ({ params: { download_id: id }, query }) => {
        const page = readLinePage(query)
        return renderLines(id, await downloads.lines(id, page), page.afterSeq)
      },
      { requires, detail: downloadOperations.lines },
    )
    .get(
      '/:download_id/events',
      async ({ params: { download_id: id }, query, request, server }) => {
        server?.timeout(request, 0)
        return streamNews(deps, { id, afterSeq: readAfterSeq(query), signal: request.signal })
      },
      { requires, detail: downloadOperations.follow },
    )
}

const actions: readonly DownloadAction[] = ['cancel', 'pause', 'resume']

function actionRoutes(deps: InstallerRoutesDeps) {
  const app = new Elysia({ name: 'model-download-actions', prefix: '/downloads/:download_id' }).use(
    guard(deps.auth),
  )
  for (const action of actions) {
    app.post(
      `/${action}`,
      async ({ params: { download_id: id }, principal, set }) => {
        const download = await deps.installer.downloads.act(id, action)
        await record(deps, { principal, set, download, action })
        return renderDownload(download)
      },
      { requires, parse: 'none', detail: actionOperations[action] },
    )
  }
  return app
}

type Acting = { principal: Principal; set: Parameters<typeof actorOf>[1] }

async function start(
  deps: InstallerRoutesDeps,
  { principal, body, request, set }: Acting & { body: unknown; request: Request },
): Promise<{ answer: DownloadRecord | AlreadyInstalled; isNew: boolean }> {
  const { downloads, models } = deps.installer
  const started = await downloads.start(principal.userId, readInstall(body), request.signal)
  if (started.kind === 'installed') {
    const model = renderModel(started.model, await models.usesOf(started.model.name))
    return { answer: { status: 'already_installed', model }, isNew: false }
  }
  const { download } = started
  const isNew = started.kind === 'started'
  if (isNew) await record(deps, { principal, set, download, action: 'start' })
  return { answer: renderDownload(download), isNew }
}

function record(
  { audit }: InstallerRoutesDeps,
  { principal, set, download, action }: Acting & { download: Download; action: string },
): Promise<void> {
  const { id, model, source, status } = download
  return audit.record({
    actor: actorOf(principal, set),
    action: `model_download.${action}`,
    resource: { type: 'model_download', id },
    changes: { before: null, after: { model, source, status } },
  })
}

async function streamNews(
  { installer, config }: InstallerRoutesDeps,
  { id, afterSeq, signal }: { id: string; afterSeq: number; signal: AbortSignal },
): Promise<Response> {
  const { controller } = followSignal(signal)
  return streamEvents(
    {
      items: await installer.downloads.follow(id, afterSeq, controller.signal),
      render: renderNews,
      fail: ({ message, wireCode }) =>
        eventFrame('error', { error: { message, code: wireCode, param: null } }),
      // Something is told in each heartbeat.
      keepAlive: null,
      commit() {},
      abandon: () => controller.abort(),
    },
    { ...config.stream, closing: '' },
  )
}

function renderNews({ download, lines }: DownloadNews): string {
  const name = isTerminal(download.status) ? 'done' : 'progress'
  const said = lines.map((line) => eventFrame('log', renderLine(line)))
  return said.join('') + eventFrame(name, renderDownload(download))
}
