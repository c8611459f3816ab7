import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { idExample, instant, instantExample, nullable } from '#api/shapes.ts'
import type { Frozen } from '#lib/frozen.ts'
import { type DownloadLine, downloadStatuses } from './installer.ts'
import type { InstalledModel } from './library.ts'
import { taskSource, withoutVersion } from './names.ts'
import type { Download } from './store.ts'

/** Response objects of `/v1/model-installer`. */

/** Of every endpoint. */
export const common = { permission: 'can_manage_models', tag: 'Model installer' } as const

const count = (description: string) => Type.Integer({ description, minimum: 0 })
export const listRecord = <T extends TSchema>(item: T) =>
  Type.Object({ object: Type.Literal('list'), data: Type.Array(item) })

const downloadFile = Type.Object({
  path: Type.String({ description: 'In the folder of the model; for an upstream, a digest.' }),
  bytes_total: nullable(Type.Integer(), 'Null while unknown.'),
  bytes_completed: count('Never decreases.'),
  status: Type.Union([
    Type.Literal('waiting'),
    Type.Literal('downloading'),
    Type.Literal('verifying'),
    Type.Literal('completed'),
  ]),
})

export const downloadRecord = Type.Object(
  {
    download_id: Type.String({ format: 'uuid' }),
    object: Type.Literal('model_download'),
    task: Type.Union([Type.Literal('install'), Type.Literal('verify'), Type.Literal('runtime')], {
      description:
        '`verify`: the installed files are checked. `runtime`: a runtime is installed; `bytes_total` is an estimate.',
    }),
    model: Type.String({
      description: 'The name under which the model is installed; `runtime:<name>` for a runtime.',
    }),
    source: Type.String({
      description:
        'Source of the model: `hub:org/name@main`, `url:https://…`, `oci:…`, `local:…`, `upstream:…`, `packages:…`.',
    }),
    revision: nullable(Type.String(), 'The revision of the files at the source.'),
    status: Type.Union(
      downloadStatuses.map((status) => Type.Literal(status)),
      { description: '`completed`, `failed` and `cancelled` are final.' },
    ),
    bytes_total: nullable(Type.Integer(), 'Of all files; null while unknown.'),
    bytes_completed: count('Of all files; never decreases.'),
    bytes_per_second: nullable(Type.Integer(), 'Over the last seconds; null without data.'),
    eta_seconds: nullable(Type.Integer(), 'Remaining time at this rate.'),
    files: Type.Array(downloadFile),
    attempts: count('How often a worker has started it; more than once after a crash or a pause.'),
    error: nullable(
      Type.Object({ code: Type.String(), message: Type.String() }),
      'The reason of a failure or an automatic pause.',
    ),
    started_at: instant('When it was requested'),
    updated_at: instant('When it last changed'),
    finished_at: nullable(Type.String({ format: 'date-time' }), 'When it ended.'),
    started_by: Type.String({ description: 'The id of the user.' }),
  },
  { $id: 'ModelDownload' },
)
export type DownloadRecord = Frozen<Static<typeof downloadRecord>>

export const downloadLineRecord = Type.Object(
  {
    seq: Type.Integer({ description: 'Line number, from 1.' }),
    ts: instant('When it was logged'),
    level: Type.Union([Type.Literal('info'), Type.Literal('warn'), Type.Literal('error')]),
    message: Type.String(),
  },
  { $id: 'ModelDownloadLine' },
)
export type DownloadLineRecord = Static<typeof downloadLineRecord>

export const downloadLines = Type.Object({
  object: Type.Literal('list'),
  download_id: Type.String({ format: 'uuid' }),
  data: Type.Array(downloadLineRecord),
  next_seq: Type.Integer({ description: '`after_seq` of the next page.' }),
})

export const installedModelRecord = Type.Object(
  {
    object: Type.Literal('installed_model'),
    name: Type.String(),
    source: Type.String(),
    revision: nullable(Type.String(), 'The revision of the files at the source.'),
    bytes: count('Of all files.'),
    sha256: nullable(Type.String(), 'Of a single file; null if there are several.'),
    files: Type.Array(
      Type.Object({ path: Type.String(), bytes: count('File size.'), sha256: Type.String() }),
    ),
    verified: Type.Boolean({
      description: 'Whether every file has the hash that its source published.',
    }),
    installed_at: instant('When it was installed'),
    in_use_by: Type.Array(Type.String(), {
      description: 'Sentences that describe its current users. A model in use cannot be deleted.',
    }),
  },
  { $id: 'InstalledModel' },
)
export type InstalledModelRecord = Frozen<Static<typeof installedModelRecord>>

export const alreadyInstalled = Type.Object(
  { status: Type.Literal('already_installed'), model: installedModelRecord },
  { $id: 'AlreadyInstalled' },
)

export const deletedModel = Type.Object({
  object: Type.Literal('installed_model.deleted'),
  name: Type.String(),
  deleted: Type.Literal(true),
  freed_bytes: count('Freed disk space.'),
})

export const storageRecord = Type.Object(
  {
    object: Type.Literal('model_storage'),
    total: count('Size of the disk in bytes.'),
    free: count('Free bytes.'),
    used: count('Bytes of installed models.'),
    partials: count('Bytes of partially downloaded files.'),
  },
  { $id: 'ModelStorage' },
)

export function renderDownload(download: Download): DownloadRecord {
  const { task, bytesTotal, bytesCompleted, bytesPerSecond } = download
  return {
    download_id: download.id,
    object: 'model_download',
    task: task.kind,
    model: download.model,
    source: taskSource(task),
    revision: download.revision,
    status: download.status,
    bytes_total: bytesTotal,
    bytes_completed: bytesCompleted,
    bytes_per_second: bytesPerSecond,
    eta_seconds:
      bytesTotal === null || !bytesPerSecond
        ? null
        : Math.ceil(Math.max(0, bytesTotal - bytesCompleted) / bytesPerSecond),
    files: download.files.map(({ path, bytesTotal, bytesCompleted, status }) => ({
      path,
      bytes_total: bytesTotal,
      bytes_completed: bytesCompleted,
      status,
    })),
    attempts: download.attempts,
    error: download.error,
    started_at: download.startedAt.toISOString(),
    updated_at: download.updatedAt.toISOString(),
    finished_at: download.finishedAt?.toISOString() ?? null,
    started_by: download.startedBy,
  }
}

export function renderLine({ seq, at, level, message }: DownloadLine): DownloadLineRecord {
  return { seq, ts: at.toISOString(), level, message }
}

export function renderModel(model: InstalledModel, uses: readonly string[]): InstalledModelRecord {
  const [only, ...others] = model.files
  return {
    object: 'installed_model',
    name: model.name,
    source: model.source,
    revision: model.revision,
    bytes: model.bytes,
    sha256: only === undefined || others.length > 0 ? null : only.sha256,
    files: model.files.map((file) => ({ ...file, path: withoutVersion(file.path) })),
    verified: model.isVerified,
    installed_at: model.installedAt,
    in_use_by: uses,
  }
}

export const downloadExample: DownloadRecord = {
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
export const lineExample: DownloadLineRecord = {
  seq: 1,
  ts: instantExample,
  level: 'info' as const,
  message: 'org/tiny-gguf at main is commit 6c5f0e3d2b1a.',
}

/** The same download before its start. */
export const queuedExample: DownloadRecord = {
  ...downloadExample,
  status: 'queued',
  bytes_completed: 0,
  bytes_per_second: null,
  eta_seconds: null,
  files: [],
  attempts: 0,
}
