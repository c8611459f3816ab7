import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, eventStream, json } from '#api/endpoint.ts'
import { streamErrorBody } from '#api/error-shapes.ts'
import { idExample, instantExample } from '#api/shapes.ts'
import type { Config } from '#config/schema.ts'
import { streamEvents } from '#http/event-stream.ts'
import { eventFrame } from '#http/frame-text.ts'
import { followSignal } from '#lib/deadline.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import type { Installer } from './create-installer.ts'
import { type DownloadAction, type DownloadUpdate, isTerminal } from './installer.ts'
import { modelLibraryEndpoints } from './model-endpoints.ts'
import {
  common,
  type DownloadRecord,
  downloadExample,
  downloadLineRecord,
  downloadLines,
  downloadRecord,
  lineExample,
  listRecord,
  renderDownload,
  renderLine,
} from './record.ts'
import { runtimeEndpoints } from './runtime-endpoints.ts'
import { eventsQuery, linesQuery } from './schema.ts'
import { downloadResponse, startEndpoint } from './start-endpoint.ts'

export type InstallerEndpointsDeps = {
  installer: Installer
  config: Pick<Config, 'stream'>
}

/** Installing models on this machine, and the installed models. */
export function installerEndpoints(deps: InstallerEndpointsDeps): Endpoint[] {
  const { installer, config } = deps
  const { downloads } = installer

  const actionEndpoint = (action: DownloadAction, summary: string, description: string) =>
    endpoint({
      method: 'POST',
      path: `/v1/model-installer/downloads/:download_id/${action}`,
      ...common,
      summary,
      description: `${description} The response waits up to two seconds for the effect. Repeating the request has no effect.`,
      params: idParam,
      responses: { 200: downloadResponse('The download.', actionExamples[action]) },
      errors: {
        not_found: downloadNotFound,
        conflict: { code: 'download_terminal', message: 'This download is completed.' },
      },
      async handle({ params: { download_id: id }, context }) {
        return renderDownload(await downloads.act(actingPrincipal(context), id, action))
      },
    })

  return [
    endpoint({
      method: 'GET',
      path: '/v1/model-installer/downloads',
      ...common,
      summary: 'List the active downloads',
      description: 'Downloads that are not finished, including paused ones, oldest first.',
      responses: {
        200: {
          description: 'Downloads.',
          content: json(listRecord(downloadRecord), { object: 'list', data: [downloadExample] }),
        },
      },
      handle: async () => ({ object: 'list', data: (await downloads.list()).map(renderDownload) }),
    }),

    startEndpoint(installer),

    endpoint({
      method: 'GET',
      path: '/v1/model-installer/downloads/:download_id',
      ...common,
      summary: 'Retrieve a download',
      description:
        'A finished download is kept for `installer.keep_terminal_s`, one day by default.',
      params: idParam,
      responses: { 200: downloadResponse('The download.', downloadExample) },
      errors: { not_found: downloadNotFound },
      handle: async ({ params: { download_id: id } }) => renderDownload(await downloads.find(id)),
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/model-installer/downloads/:download_id',
      ...common,
      summary: 'Cancel a download and delete its data',
      description:
        'The partial data of a finished download is deleted too. Installed models are not affected.',
      params: idParam,
      responses: {
        200: downloadResponse(
          'The download, cancelled unless it was finished.',
          actionExamples.cancel,
        ),
      },
      errors: { not_found: downloadNotFound },
      async handle({ params: { download_id: id }, context }) {
        return renderDownload(await downloads.discard(actingPrincipal(context), id))
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/model-installer/downloads/:download_id/logs',
      ...common,
      summary: 'Read the log of a download',
      description:
        'The last `installer.log_lines_max` lines, oldest first. Empty for a finished download.',
      params: idParam,
      query: linesQuery,
      responses: {
        200: {
          description: 'Lines.',
          content: json(downloadLines, {
            object: 'list',
            download_id: idExample,
            data: [lineExample],
            next_seq: 1,
          }),
        },
      },
      errors: { not_found: downloadNotFound, unprocessable: invalidSeq },
      async handle({ params: { download_id: id }, query: { after_seq: afterSeq, limit } }) {
        const lines = await downloads.lines(id, { afterSeq, limit })
        const nextSeq = lines.at(-1)?.seq ?? afterSeq
        const data = lines.map(renderLine)
        return { object: 'list', download_id: id, data, next_seq: nextSeq }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/model-installer/downloads/:download_id/events',
      ...common,
      summary: 'Follow a download',
      description: `Sends an event \`log\` for each line, and an event \`progress\` with the download at once, after each change (at
most twice a second) and in each heartbeat. A final event \`done\` ends the stream; a pause does not. An event \`error\`
reports that the stream broke. A worker serves at most 64 followers.`,
      params: idParam,
      query: eventsQuery,
      responses: {
        200: {
          description: 'Events.',
          content: eventStream(
            Type.Union([downloadRecord, downloadLineRecord, streamErrorBody]),
            [
              eventFrame('log', lineExample),
              eventFrame('progress', downloadExample),
              eventFrame('done', { ...actionExamples.cancel, status: 'completed' }),
            ].join(''),
          ),
        },
      },
      errors: {
        not_found: downloadNotFound,
        unprocessable: invalidSeq,
        too_many_streams: 'Too many clients follow downloads; retry later.',
      },
      async handle({ params: { download_id: id }, query, context, request, server }) {
        server?.timeout(request, 0)
        const { controller } = followSignal(context.signal)
        return streamEvents(
          {
            items: await downloads.follow(id, query.after_seq, controller.signal),
            renderer: { push: renderUpdate },
            fail: ({ message, wireCode }) =>
              eventFrame('error', { error: { message, code: wireCode, param: null } }),
            // The updates include heartbeats.
            keepAlive: null,
            abandon: () => controller.abort(),
          },
          { ...config.stream, closing: '', context },
        )
      },
    }),

    actionEndpoint(
      'cancel',
      'Cancel a download',
      'Its data is kept for the next download of the same model, as long as the download itself.',
    ),
    actionEndpoint(
      'pause',
      'Pause a download',
      'It keeps its data and its model name: no other download of the model can start.',
    ),
    actionEndpoint('resume', 'Resume a download', 'Also after an automatic pause on a full disk.'),

    ...modelLibraryEndpoints(deps),
    ...runtimeEndpoints(deps),
  ]
}

function renderUpdate({ download, lines }: DownloadUpdate): string {
  const event = isTerminal(download.status) ? 'done' : 'progress'
  const frames = lines.map((line) => eventFrame('log', renderLine(line)))
  return frames.join('') + eventFrame(event, renderDownload(download))
}

const idParam = { download_id: 'The id of the download.' }
const downloadNotFound = `There is no download with the id "${idExample}".`
const invalidSeq = '"after_seq" must be a whole number from 0 to 2147483647.'

const inactive = { ...downloadExample, bytes_per_second: null, eta_seconds: null }
const actionExamples: Readonly<Record<DownloadAction, DownloadRecord>> = {
  cancel: { ...inactive, status: 'cancelled', finished_at: instantExample },
  pause: { ...inactive, status: 'paused' },
  resume: downloadExample,
}
