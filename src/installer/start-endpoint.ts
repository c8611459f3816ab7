import { Type } from '@sinclair/typebox'
import { withNulls } from '#api/described.ts'
import { type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import type { Installer } from './create-installer.ts'
import { modelExample } from './model-endpoints.ts'
import {
  alreadyInstalled,
  common,
  type DownloadRecord,
  downloadRecord,
  queuedExample,
  renderDownload,
  renderModel,
} from './record.ts'
import { installBody, readInstall } from './schema.ts'

/** Installing a model. */
export function startEndpoint({ downloads, models }: Installer): Endpoint {
  return endpoint({
    method: 'POST',
    path: '/v1/model-installer/downloads',
    ...common,
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
      202: downloadResponse('The download is queued.', queuedExample),
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
      const started = await downloads.start(actingPrincipal(context), body, context.signal)
      if (started.kind === 'installed') {
        const model = renderModel(started.model, await models.usesOf(started.model.name))
        return { status: 'already_installed', model }
      }
      if (started.kind === 'started') set.status = 202
      return renderDownload(started.download)
    },
  })
}

export function downloadResponse(description: string, example: DownloadRecord) {
  return { description, content: json(downloadRecord, example) }
}

const startErrors = {
  unprocessable: [
    { code: 'bad_source', message: 'A hub model is named "org/name".' },
    { code: 'no_files', message: 'No file of the source matches *.gguf.' },
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
  not_found: 'huggingface.co (installer.hub_url) does not have the repository org/tiny at v1.',
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
