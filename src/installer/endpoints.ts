import { Type } from '@sinclair/typebox'
import { withNulls } from '#api/described.ts'
import {
  type CallerContext,
  type Endpoint,
  endpoint,
  eventStream,
  json,
  jsonBody,
} from '#api/endpoint.ts'
import { idExample, instantExample } from '#api/shapes.ts'
import type { Audit } from '#audit/audit.ts'
import type { Config } from '#config/schema.ts'
import { streamEvents } from '#http/event-stream.ts'
import { eventFrame } from '#http/frame-text.ts'
import { followSignal } from '#lib/deadline.ts'
import {
  type Download,
  type DownloadAction,
  type DownloadUpdate,
  type Installer,
  isTerminal,
} from './installer.ts'
import { modelExample, modelLibraryEndpoints } from './model-endpoints.ts'
import {
  alreadyInstalled,
  type DownloadLineRecord,
  type DownloadRecord,
  downloadLineRecord,
  downloadLines,
  downloadRecord,
  listRecord,
  renderDownload,
  renderLine,
  renderModel,
} from './record.ts'
import { eventsQuery, installBody, linesQuery, readInstall } from './schema.ts'

export type InstallerEndpointsDeps = {
  installer: Installer
  audit: Pick<Audit, 'record'>
  config: Pick<Config, 'stream'>
}

/** Installing models on this machine, and the installed models. */
export function installerEndpoints(deps: InstallerEndpointsDeps): Endpoint[] {
  const { installer, audit, config } = deps
  const { downloads, models } = installer

  function record(
    { principal, keyId, requestId }: CallerContext,
    download: Download,
    action: string,
  ) {
    const { id, model, source, status } = download
    return audit.record({
      actor: { userId: principal.userId, keyId, requestId },
      action: `model_download.${action}`,
      resource: { type: 'model_download', id },
      changes: { before: null, after: { model, source, status } },
    })
  }

  const actionEndpoint = (action: DownloadAction, summary: string, description: string) =>
    endpoint({
      method: 'POST',
      path: `/v1/model-installer/downloads/:download_id/${action}`,
      permission: 'can_manage_models',
      tag: 'Model installer',
      summary,
      description: `${description} The response waits up to two seconds for the effect. Repeating the request has no effect.`,
      params: idParam,
      responses: { 200: downloadResponse('The download.', actionExamples[action]) },
      errors: {
        not_found: downloadNotFound,
        conflict: { code: 'download_terminal', message: 'This download is completed.' },
      },
      async handle({ params: { download_id: id }, context }) {
        const download = await downloads.act(id, action)
        await record(context, download, action)
        return renderDownload(download)
      },
    })

  return [
    endpoint({
      method: 'GET',
      path: '/v1/model-installer/downloads',
      permission: 'can_manage_models',
      tag: 'Model installer',
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

    endpoint({
      method: 'POST',
      path: '/v1/model-installer/downloads',
      permission: 'can_manage_models',
      tag: 'Model installer',
      summary: 'Install a model',
      description: `The source is resolved at once, so that a missing model, a forbidden host or a full disk is reported
here. Any worker then downloads the files over several connections and resumes after broken connections, crashes and
restarts. Each file is checked against the hash of its source; without one, the model is installed as not verified. The
previous version of the model stays in use until all files are complete.

The request is idempotent: it returns 200 with the active download, or with \`already_installed\`. A newer revision is a
new download.

Models are installed on the machine of the worker that runs the download. Share the folder between machines, or run
downloads on one machine only.`,
      body: jsonBody(withNulls(installBody), {
        example: { model: 'org/tiny-gguf', files: ['*q4_k_m*'] },
        read: readInstall,
      }),
      responses: {
        202: downloadResponse('The download is queued.', {
          ...downloadExample,
          status: 'queued',
          bytes_completed: 0,
          bytes_per_second: null,
          eta_seconds: null,
          files: [],
          attempts: 0,
        }),
        200: {
          description: 'The model is being installed, or is installed and current.',
          content: {
            'application/json': {
              schema: Type.Union([downloadRecord, alreadyInstalled]),
              example: { status: 'already_installed', model: modelExample },
            },
          },
        },
      },
      errors: startErrors,
      async handle({ body, context, set }) {
        const started = await downloads.start(context.principal.userId, body, context.signal)
        if (started.kind === 'installed') {
          const model = renderModel(started.model, await models.usesOf(started.model.name))
          return { status: 'already_installed', model }
        }
        if (started.kind === 'started') {
          set.status = 202
          await record(context, started.download, 'start')
        }
        return renderDownload(started.download)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/model-installer/downloads/:download_id',
      permission: 'can_manage_models',
      tag: 'Model installer',
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
      permission: 'can_manage_models',
      tag: 'Model installer',
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
        const download = await downloads.discard(id)
        await record(context, download, 'discard')
        return renderDownload(download)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/model-installer/downloads/:download_id/logs',
      permission: 'can_manage_models',
      tag: 'Model installer',
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
      permission: 'can_manage_models',
      tag: 'Model installer',
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
            Type.Union([downloadRecord, downloadLineRecord, streamError]),
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
            render: renderUpdate,
            fail: ({ message, wireCode }) =>
              eventFrame('error', { error: { message, code: wireCode, param: null } }),
            // The updates include heartbeats.
            keepAlive: null,
            commit() {},
            abandon: () => controller.abort(),
          },
          { ...config.stream, closing: '' },
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
  ]
}

function renderUpdate({ download, lines }: DownloadUpdate): string {
  const event = isTerminal(download.status) ? 'done' : 'progress'
  const frames = lines.map((line) => eventFrame('log', renderLine(line)))
  return frames.join('') + eventFrame(event, renderDownload(download))
}

function downloadResponse(description: string, example: DownloadRecord) {
  return { description, content: json(downloadRecord, example) }
}

const idParam = { download_id: 'The id of the download.' }
const downloadNotFound = `There is no download with the id "${idExample}".`
const invalidSeq = '"after_seq" must be a whole number from 0 to 2147483647.'

const streamError = Type.Object(
  { error: Type.Object({ message: Type.String(), code: Type.String(), param: Type.Null() }) },
  { $id: 'ModelDownloadStreamError', description: 'The data of the event `error`.' },
)

const downloadExample: DownloadRecord = {
  download_id: idExample,
  object: 'model_download',
  task: 'install',
  model: 'org/tiny-gguf',
  source: 'hub:org/tiny-gguf@main',
  revision: '6c5f0e3d2b1a49788796a5b4c3d2e1f00f1e2d3c',
  status: 'downloading',
  bytes_total: 4_294_967_296,
  bytes_completed: 1_073_741_824,
  bytes_per_second: 104_857_600,
  eta_seconds: 31,
  files: [
    {
      path: 'tiny-q4_k_m.gguf',
      bytes_total: 4_294_967_296,
      bytes_completed: 1_073_741_824,
      status: 'downloading',
    },
  ],
  attempts: 1,
  error: null,
  started_at: instantExample,
  updated_at: instantExample,
  finished_at: null,
  started_by: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a62',
}
const lineExample: DownloadLineRecord = {
  seq: 1,
  ts: instantExample,
  level: 'info' as const,
  message: 'org/tiny-gguf at main is commit 6c5f0e3d2b1a.',
}
const inactive = { ...downloadExample, bytes_per_second: null, eta_seconds: null }
const actionExamples: Readonly<Record<DownloadAction, DownloadRecord>> = {
  cancel: { ...inactive, status: 'cancelled', finished_at: instantExample },
  pause: { ...inactive, status: 'paused' },
  resume: downloadExample,
}

const startErrors = {
  unprocessable: [
    { code: 'bad_source', message: 'A hub model is named "org/name".' },
    { code: 'no_files', message: 'No file of the source matches.' },
    {
      code: 'choose_files',
      message:
        'The source holds several models; select one with "files": tiny-q4_k_m.gguf (4295 MB), tiny-q8_0.gguf (8590 MB).',
    },
    {
      code: 'unsafe_file_type',
      message:
        'The file "model.bin" can run code when it is loaded; set allow_unsafe to install it.',
    },
    '"sha256" is only allowed for the source "url", not for "hub".',
  ],
  unknown_field: '"url" is not a known field.',
  permission_denied: {
    code: 'host_not_allowed',
    message: 'The URL names a host that is not allowed here.',
  },
  not_found: 'The source does not have this.',
  source_auth_required:
    'The source requires a credential that this server does not have, or the model does not exist.',
  conflict: [
    {
      code: 'download_active',
      message: '"tiny" is being installed from hub:org/tiny@v1.',
    },
    {
      code: 'name_taken',
      message: 'A model from another source is installed as "tiny"; delete it or use another name.',
    },
    {
      code: 'too_many_downloads',
      message: 'The limit of 100 active downloads is reached.',
    },
  ],
  insufficient_storage:
    'The disk has 2147483648 bytes free; 5583457485 are needed, including the reserve.',
  upstream_unreachable: { code: 'resolve_failed', message: 'The server cannot be reached.' },
  upstream_first_event_timeout: {
    code: 'resolve_failed',
    message: 'The source took too long to respond.',
  },
} as const
