import { type Static, Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { nullable } from '#api/shapes.ts'
import type { Frozen } from '#lib/frozen.ts'
import { commandLine } from '#lib/own-program.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import type { Installer } from './create-installer.ts'
import {
  common,
  type DownloadRecord,
  downloadRecord,
  listRecord,
  queuedExample,
  renderDownload,
} from './record.ts'
import { downloadName, type LocalRuntime, runtimeNotFound, stateOf } from './runtime.ts'
import { downloadResponse } from './start-endpoint.ts'

const runtimeRecord = Type.Object(
  {
    object: Type.Literal('runtime'),
    name: Type.String(),
    purpose: Type.String({ description: 'What it is for, in English.' }),
    state: Type.Union(
      [
        Type.Literal('installed'),
        Type.Literal('missing'),
        Type.Literal('outdated'),
        Type.Literal('unsupported'),
      ],
      {
        description:
          '`outdated`: another version is installed, which is not used. `unsupported`: the package has no files for this platform.',
      },
    ),
    package: Type.String({ description: 'Of the package registry.' }),
    version: Type.String({ description: 'The required version.' }),
    installed_version: nullable(Type.String(), 'Null if none is installed.'),
    license: Type.String(),
    bytes: Type.Integer({ description: 'Disk space, approximately.', minimum: 0 }),
    enabled: Type.Boolean({ description: 'Whether the configuration uses it.' }),
    command: Type.String({ description: 'The command that installs it and its default model.' }),
    download_id: nullable(Type.String({ format: 'uuid' }), 'Its active download.'),
    default_model: nullable(
      Type.Object({
        model: Type.String({
          description: 'With `files` a body of `POST /v1/model-installer/downloads`.',
        }),
        files: Type.Array(Type.String()),
        bytes: Type.Integer({ description: 'Approximately.', minimum: 0 }),
        installed: Type.Boolean(),
      }),
      'The model of the hub that it runs by default; null: it needs none.',
    ),
  },
  { $id: 'Runtime' },
)
type RuntimeRecord = Frozen<Static<typeof runtimeRecord>>

const installedRuntime = Type.Object(
  { status: Type.Literal('already_installed'), runtime: runtimeRecord },
  { $id: 'InstalledRuntime' },
)

/** The native code that local models need. */
export function runtimeEndpoints({
  installer: { runtimes },
}: {
  installer: Pick<Installer, 'runtimes'>
}): Endpoint[] {
  async function render(runtime: LocalRuntime): Promise<RuntimeRecord> {
    const { model } = runtime
    return {
      object: 'runtime',
      name: runtime.name,
      purpose: runtime.purpose,
      state: stateOf(runtime),
      package: runtime.package,
      version: runtime.version,
      installed_version: runtime.installedVersion,
      license: runtime.license,
      bytes: runtime.bytes,
      enabled: runtime.isEnabled,
      command: commandLine(runtime.command),
      download_id: (await runtimes.activeDownload(runtime.name))?.id ?? null,
      default_model:
        model === null
          ? null
          : {
              model: model.repository,
              files: model.files,
              bytes: model.bytes,
              installed: await runtimes.hasModel(model.repository),
            },
    }
  }

  return [
    endpoint({
      method: 'GET',
      path: '/v1/model-installer/runtimes',
      ...common,
      summary: 'List the runtimes of local models',
      description:
        'The native code that runs models and decodes audio on the machine that responds, installed or not.',
      responses: {
        200: {
          description: 'Runtimes.',
          content: json(listRecord(runtimeRecord), { object: 'list', data: [runtimeExample] }),
        },
      },
      handle: async () => ({
        object: 'list',
        data: await Promise.all(runtimes.list().map(render)),
      }),
    }),

    endpoint({
      method: 'POST',
      path: '/v1/model-installer/runtimes/:name/install',
      ...common,
      summary: 'Install a runtime',
      description: `Downloads the packages of the required version from the package registry. It is a download like that of a
model: with progress, log, pause, resume and cancellation under \`/v1/model-installer/downloads\`. No restart is needed:
what opens next uses it. The request is idempotent: it returns 200 with the active download, or with
\`already_installed\`.

It is installed on the machine of the worker that runs the download.`,
      params: { name: 'The name of the runtime.' },
      responses: {
        202: downloadResponse('The download is queued.', runtimeDownloadExample),
        200: {
          description: 'The runtime is being installed, or is installed.',
          content: {
            'application/json': {
              schema: Type.Union([downloadRecord, installedRuntime]),
              example: {
                status: 'already_installed',
                runtime: { ...runtimeExample, state: 'installed', installed_version: '1.13.8' },
              },
            },
          },
        },
      },
      errors: {
        not_found: 'There is no runtime "speach".',
        conflict: [
          {
            code: 'platform_unsupported',
            message: 'There is no sherpa-onnx-node for freebsd on x64.',
          },
          { code: 'too_many_downloads', message: 'The limit of 100 active downloads is reached.' },
        ],
      },
      async handle({ params: { name }, context, set }) {
        const started = await runtimes.start(actingPrincipal(context), name)
        if (started === null) {
          const runtime = runtimes.list().find((one) => one.name === name)
          if (runtime === undefined) throw runtimeNotFound(name)
          return { status: 'already_installed', runtime: await render(runtime) }
        }
        if (started.kind === 'started') set.status = 202
        return renderDownload(started.download)
      },
    }),
  ]
}

const runtimeExample: RuntimeRecord = {
  object: 'runtime',
  name: 'speech',
  purpose: 'speech recognition',
  state: 'missing',
  package: 'sherpa-onnx-node',
  version: '1.13.8',
  installed_version: null,
  license: 'Apache-2.0',
  bytes: 33_000_000,
  enabled: true,
  command: 'sluice speech install',
  download_id: null,
  default_model: {
    model: 'org/speech-base',
    files: ['*.int8.onnx', '*tokens.txt'],
    bytes: 161_000_000,
    installed: false,
  },
}

const runtimeDownloadExample: DownloadRecord = {
  ...queuedExample,
  task: 'runtime',
  model: downloadName('speech'),
  source: 'packages:sherpa-onnx-node@1.13.8',
  revision: '1.13.8',
  bytes_total: 33_000_000,
}
