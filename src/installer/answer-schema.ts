import { type Static, Type } from '@sinclair/typebox'
import { instant, nullable } from '#api/shapes.ts'
import { downloadStatuses } from './installer.ts'

/** What `/v1/model-installer` answers. */

const count = (description: string) => Type.Integer({ description, minimum: 0 })

const downloadFile = Type.Object({
  path: Type.String({ description: 'In the folder of the model; for an upstream, a digest.' }),
  bytes_total: nullable(Type.Integer(), 'Null while it is not known.'),
  bytes_completed: count('Never less than it was.'),
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
    task: Type.Union([Type.Literal('install'), Type.Literal('verify')], {
      description: '`verify`: what is installed is read again.',
    }),
    model: Type.String({ description: 'The name under which it is installed.' }),
    source: Type.String({
      description:
        'Where it comes from: `hub:org/name@main`, `url:https://…`, `oci:…`, `local:…`, `upstream:…`.',
    }),
    revision: nullable(Type.String(), 'What the source calls the state of its files.'),
    status: Type.Union(
      downloadStatuses.map((status) => Type.Literal(status)),
      { description: '`completed`, `failed` and `cancelled` are final.' },
    ),
    bytes_total: nullable(Type.Integer(), 'Of all files; null while it is not known.'),
    bytes_completed: count('Of all files; never less than it was.'),
    bytes_per_second: nullable(Type.Integer(), 'Over the last seconds; null: nothing comes.'),
    eta_seconds: nullable(Type.Integer(), 'How long the rest takes at this rate.'),
    files: Type.Array(downloadFile),
    attempts: count('How often a process took it up; more than once after a crash or a pause.'),
    error: nullable(
      Type.Object({ code: Type.String(), message: Type.String() }),
      'Why it failed, or why it pauses.',
    ),
    started_at: instant('When it was asked for'),
    updated_at: instant('When it last changed'),
    finished_at: nullable(Type.String({ format: 'date-time' }), 'When it came to its end.'),
    started_by: Type.String({ description: 'The id of the user.' }),
  },
  { $id: 'ModelDownload' },
)
export type DownloadRecord = Static<typeof downloadRecord>

export const downloadList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(downloadRecord),
})

export const downloadLineRecord = Type.Object(
  {
    seq: Type.Integer({ description: 'Counts up from 1.' }),
    ts: instant('When it was said'),
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
  next_seq: Type.Integer({ description: '`after_seq` of what follows.' }),
})
export type DownloadLines = Static<typeof downloadLines>

const installedModelRecord = Type.Object(
  {
    object: Type.Literal('installed_model'),
    name: Type.String(),
    source: Type.String(),
    revision: nullable(Type.String(), 'What the source called the state of its files.'),
    bytes: count('Of all files.'),
    sha256: nullable(Type.String(), 'Of its only file; null where it has several.'),
    files: Type.Array(
      Type.Object({ path: Type.String(), bytes: count('Its length.'), sha256: Type.String() }),
    ),
    verified: Type.Boolean({
      description: 'Whether each file has the hash that its source said, as far as is known.',
    }),
    installed_at: instant('When it was installed'),
    in_use_by: Type.Array(Type.String(), {
      description: 'Who uses it just now, as sentences. What is used cannot be deleted.',
    }),
  },
  { $id: 'InstalledModel' },
)
export type InstalledModelRecord = Static<typeof installedModelRecord>

export const installedModelList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(installedModelRecord),
})

export const alreadyInstalled = Type.Object(
  { status: Type.Literal('already_installed'), model: installedModelRecord },
  { $id: 'AlreadyInstalled' },
)
export type AlreadyInstalled = Static<typeof alreadyInstalled>

export const deletedModel = Type.Object({
  object: Type.Literal('installed_model.deleted'),
  name: Type.String(),
  deleted: Type.Literal(true),
  freed_bytes: count('What it took on the disk.'),
})
export type DeletedModel = Static<typeof deletedModel>

export const storageRecord = Type.Object(
  {
    object: Type.Literal('model_storage'),
    total: count('Bytes of the disk.'),
    free: count('Bytes that are left.'),
    used: count('Bytes that installed models take.'),
    partials: count('Bytes of what downloads have brought that are not completed.'),
  },
  { $id: 'ModelStorage' },
)
export type StorageRecord = Static<typeof storageRecord>
