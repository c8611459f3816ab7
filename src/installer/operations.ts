import { Type } from '@sinclair/typebox'
import { withNulls } from '#api/described.ts'
import { idExample, instantExample } from '#api/shapes.ts'
import { eventStream, json, operation } from '#docs/operation.ts'
import {
  alreadyInstalled,
  type DownloadLineRecord,
  type DownloadRecord,
  downloadLineRecord,
  downloadLines,
  downloadList,
  downloadRecord,
} from './answer-schema.ts'
import type { DownloadAction } from './installer.ts'
import { modelExample } from './model-operations.ts'
import { eventsQuery, installBody, linesQuery } from './schema.ts'

const tag = 'Model installer'
const path = { download_id: 'The id of the download.' }

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
const line: DownloadLineRecord = {
  seq: 1,
  ts: instantExample,
  level: 'info' as const,
  message: 'org/tiny-gguf at main is commit 6c5f0e3d2b1a.',
}

const absent = `There is no download with the id "${idExample}".`
const terminal = { code: 'download_terminal', message: 'This download is completed.' }
const badSeq = '"after_seq" must be a whole number from 0 to 2147483647.'

const shown = (description: string, example: DownloadRecord = downloadExample) => ({
  description,
  content: json(downloadRecord, example),
})

const paused: DownloadRecord = {
  ...downloadExample,
  status: 'paused',
  bytes_per_second: null,
  eta_seconds: null,
}
const cancelled: DownloadRecord = {
  ...paused,
  status: 'cancelled',
  finished_at: instantExample,
}

const wire = (events: readonly (readonly [string, unknown])[]) =>
  events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('')

const streamError = Type.Object(
  { error: Type.Object({ message: Type.String(), code: Type.String(), param: Type.Null() }) },
  { $id: 'ModelDownloadStreamError', description: 'The data of the event `error`.' },
)

export const downloadOperations = {
  list: operation({
    tag,
    summary: 'List the downloads that are under way',
    description: 'Those that are not over, paused ones among them, the oldest first.',
    answers: {
      200: {
        description: 'Downloads.',
        content: json(downloadList, { object: 'list', data: [downloadExample] }),
      },
    },
  }),
  start: operation({
    tag,
    summary: 'Install a model',
    description: [
      'The source is asked at once what it has, so what cannot be found, is not allowed or has no room is told here. The files are then brought by whichever process takes the work up, over several connections; what breaks off, or a process that ends, is gone on from where it stands. Each file is held against the hash that its source gives; without one the model is kept as not verified. Until everything is there, what was installed under this name before stays in use.',
      'The same request again changes nothing: it answers 200 with the download that is under way, or with `already_installed`. A revision that has moved on is a new download.',
      'Models land on the machine of the process that does the work. Several machines share one folder, or one of them alone does the work.',
    ].join('\n\n'),
    body: {
      content: json(withNulls(installBody), { model: 'org/tiny-gguf', files: ['*q4_k_m*'] }),
    },
    answers: {
      202: shown('It is begun.', {
        ...downloadExample,
        status: 'queued',
        bytes_completed: 0,
        bytes_per_second: null,
        eta_seconds: null,
        files: [],
        attempts: 0,
      }),
      200: {
        description: 'It is under way already, or installed as it stands.',
        content: {
          'application/json': {
            schema: Type.Union([downloadRecord, alreadyInstalled]),
            example: { status: 'already_installed', model: modelExample },
          },
        },
      },
    },
    errors: {
      unprocessable: [
        { code: 'bad_source', message: 'A model of the hub is called "org/name".' },
        { code: 'no_files', message: 'The source has no such files.' },
        {
          code: 'choose_files',
          message:
            'The source holds several models; say which in files: tiny-q4_k_m.gguf (4295 MB), tiny-q8_0.gguf (8590 MB).',
        },
        {
          code: 'unsafe_file_type',
          message:
            'The file "model.bin" can run code when it is loaded; allow_unsafe takes it nevertheless.',
        },
        '"sha256" goes with the source "url", and this one is "hub".',
      ],
      unknown_field: '"url" is not a known field.',
      permission_denied: {
        code: 'host_not_allowed',
        message: 'The URL names a host that is not allowed here.',
      },
      not_found: 'The source does not have this.',
      source_auth_required:
        'The source wants a credential that this server does not have, or there is no such model.',
      conflict: [
        { code: 'download_active', message: '"tiny" comes from hub:org/tiny@v1 just now.' },
        {
          code: 'name_taken',
          message:
            'A model from elsewhere is installed as "tiny"; delete it first, or give another name.',
        },
        {
          code: 'too_many_downloads',
          message: '100 downloads are under way, which is the limit.',
        },
      ],
      insufficient_storage:
        'The disk has 2147483648 bytes left, and 5583457485 are needed, the reserve included.',
      upstream_unreachable: { code: 'resolve_failed', message: 'The server cannot be reached.' },
      upstream_first_event_timeout: {
        code: 'resolve_failed',
        message: 'The source took too long to answer.',
      },
    },
  }),
  find: operation({
    tag,
    summary: 'Show a download',
    description:
      'Also one that is over: `installer.keep_terminal_s` says for how long, a day unless it is set.',
    path,
    answers: { 200: shown('The download.') },
    errors: { not_found: absent },
  }),
  discard: operation({
    tag,
    summary: 'Cancel a download and remove what it has brought',
    description:
      'Of a download that is over, what it left is removed. What is installed stays as it is.',
    path,
    answers: { 200: shown('The download, cancelled unless it was over.', cancelled) },
    errors: { not_found: absent },
  }),
  lines: operation({
    tag,
    summary: 'Read the log of a download',
    description:
      'The last lines, the oldest first; `installer.log_lines_max` says how many are kept. Empty once the download is over.',
    path,
    query: linesQuery,
    answers: {
      200: {
        description: 'Lines.',
        content: json(downloadLines, {
          object: 'list',
          download_id: idExample,
          data: [line],
          next_seq: 1,
        }),
      },
    },
    errors: { not_found: absent, unprocessable: badSeq },
  }),
  follow: operation({
    tag,
    summary: 'Watch a download until its end',
    description:
      'An event `log` for each line, an event `progress` with the download at once, with each change, at most twice a second, and in each heartbeat; in the end an event `done` with it, which ends the stream. A pause does not end it. An event `error` says that it cannot be watched any longer. A process tells 64 watchers at most.',
    path,
    query: eventsQuery,
    answers: {
      200: {
        description: 'Events.',
        content: eventStream(
          Type.Union([downloadRecord, downloadLineRecord, streamError]),
          wire([
            ['log', line],
            ['progress', downloadExample],
            ['done', { ...cancelled, status: 'completed' }],
          ]),
        ),
      },
    },
    errors: {
      not_found: absent,
      unprocessable: badSeq,
      too_many_streams: 'Too many follow downloads here; try again later.',
    },
  }),
}

export const actionOperations: Readonly<Record<DownloadAction, ReturnType<typeof operation>>> = {
  cancel: action(
    'Cancel a download',
    'What it has brought is kept for the next download of the same model, for as long as the download can be seen.',
    cancelled,
  ),
  pause: action(
    'Pause a download',
    'It keeps what it has brought, and its name: no other download of the model begins.',
    paused,
  ),
  resume: action(
    'Resume a download',
    'It goes on where it paused, also after the disk was full.',
    downloadExample,
  ),
}

function action(summary: string, description: string, example: DownloadRecord) {
  return operation({
    tag,
    summary,
    description: `${description} The answer waits until it has come about, two seconds at most. Asked again, it changes nothing.`,
    path,
    answers: { 200: shown('The download.', example) },
    errors: { not_found: absent, conflict: terminal },
  })
}
