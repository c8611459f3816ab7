import { idExample, instantExample } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import {
  type DownloadRecord,
  deletedModel,
  downloadRecord,
  type InstalledModelRecord,
  installedModelList,
  storageRecord,
} from './answer-schema.ts'

const tag = 'Model installer'
const sha256 = 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9'

export const modelExample: InstalledModelRecord = {
  object: 'installed_model',
  name: 'org/tiny-gguf',
  source: 'hub:org/tiny-gguf@main',
  revision: '6c5f0e3d2b1a49788796a5b4c3d2e1f00f1e2d3c',
  bytes: 4_294_967_296,
  sha256,
  files: [{ path: 'tiny-q4_k_m.gguf', bytes: 4_294_967_296, sha256 }],
  verified: true,
  installed_at: instantExample,
  in_use_by: [],
}

const check: DownloadRecord = {
  download_id: idExample,
  object: 'model_download',
  task: 'verify',
  model: modelExample.name,
  source: modelExample.source,
  revision: modelExample.revision,
  status: 'queued',
  bytes_total: modelExample.bytes,
  bytes_completed: 0,
  bytes_per_second: null,
  eta_seconds: null,
  files: [],
  attempts: 0,
  error: null,
  started_at: instantExample,
  updated_at: instantExample,
  finished_at: null,
  started_by: '0198f3a2-6c1d-7e04-9b5a-3f2c8d1e4a62',
}

const oneSegment = { name: 'The name of the model, with a slash in it as `%2F`.' }
const twoSegments = {
  name: 'What stands before the slash in the name of the model.',
  repository: 'What stands behind it.',
}
const absent = 'There is no installed model "org/tiny-gguf".'

export const modelOperations = {
  list: operation({
    tag,
    summary: 'List the installed models',
    description: 'Of the machine that answers, by name.',
    answers: {
      200: {
        description: 'Models.',
        content: json(installedModelList, { object: 'list', data: [modelExample] }),
      },
    },
  }),
  remove: removal(oneSegment),
  removeOfOrganisation: removal(twoSegments),
  verify: verification(oneSegment),
  verifyOfOrganisation: verification(twoSegments),
  storage: operation({
    tag,
    summary: 'Show how much room there is for models',
    description: 'Of the machine that answers.',
    answers: {
      200: {
        description: 'Bytes.',
        content: json(storageRecord, {
          object: 'model_storage',
          total: 512_000_000_000,
          free: 201_000_000_000,
          used: 4_294_971_392,
          partials: 0,
        }),
      },
    },
  }),
}

function removal(path: Readonly<Record<string, string>>) {
  return operation({
    tag,
    summary: 'Delete an installed model',
    path,
    answers: {
      200: {
        description: 'It is deleted.',
        content: json(deletedModel, {
          object: 'installed_model.deleted',
          name: modelExample.name,
          deleted: true,
          freed_bytes: 4_294_971_392,
        }),
      },
    },
    errors: {
      not_found: absent,
      conflict: {
        code: 'model_in_use',
        message: '"org/tiny-gguf" is in use: 2 generations run with it.',
      },
    },
  })
}

function verification(path: Readonly<Record<string, string>>) {
  return operation({
    tag,
    summary: 'Read all files of an installed model again',
    description:
      'They are held against the hashes that they were installed with. It goes on by itself and is watched, paused and cancelled as a download is; where a file is another one it fails with `hash_mismatch`, and the model is not verified any more. While it is under way, the same request answers with it.',
    path,
    answers: {
      202: { description: 'It is begun, or under way.', content: json(downloadRecord, check) },
    },
    errors: {
      not_found: absent,
      conflict: {
        code: 'download_active',
        message: '"org/tiny-gguf" comes from hub:org/tiny-gguf@main just now.',
      },
    },
  })
}
