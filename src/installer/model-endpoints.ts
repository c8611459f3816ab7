import { type CallerContext, type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { instantExample } from '#api/shapes.ts'
import { actingPrincipal } from '#lib/request-context.ts'
import type { Installer } from './create-installer.ts'
import {
  common,
  deletedModel,
  downloadRecord,
  type InstalledModelRecord,
  installedModelRecord,
  listRecord,
  queuedExample,
  renderDownload,
  renderModel,
  storageRecord,
} from './record.ts'

type ModelLibraryDeps = { installer: Pick<Installer, 'models'> }

/** The installed models. A name with a slash is one segment (`org%2Fname`) or two (`org/name`). */
export function modelLibraryEndpoints({ installer }: ModelLibraryDeps): Endpoint[] {
  const { models } = installer

  async function remove(name: string, context: CallerContext) {
    const freedBytes = await models.remove(actingPrincipal(context), name)
    return { object: 'installed_model.deleted', name, deleted: true, freed_bytes: freedBytes }
  }

  async function verify(name: string, context: CallerContext) {
    return renderDownload(await models.verify(actingPrincipal(context), name))
  }

  return [
    endpoint({
      method: 'GET',
      path: '/v1/model-installer/models',
      ...common,
      summary: 'List the installed models',
      description: 'Models on the machine that responds, by name.',
      responses: {
        200: {
          description: 'Models.',
          content: json(listRecord(installedModelRecord), { object: 'list', data: [modelExample] }),
        },
      },
      async handle() {
        const rendered = (await models.list()).map(async (model) =>
          renderModel(model, await models.usesOf(model.name)),
        )
        return { object: 'list', data: await Promise.all(rendered) }
      },
    }),

    endpoint({
      ...removal,
      path: '/v1/model-installer/models/:name',
      params: oneSegment,
      handle: ({ params: { name }, context }) => remove(name, context),
    }),
    endpoint({
      ...removal,
      path: '/v1/model-installer/models/:name/:repository',
      params: twoSegments,
      handle: ({ params: { name, repository }, context }) =>
        remove(`${name}/${repository}`, context),
    }),

    endpoint({
      ...verification,
      path: '/v1/model-installer/models/:name/verify',
      params: oneSegment,
      handle: ({ params: { name }, context }) => verify(name, context),
    }),
    endpoint({
      ...verification,
      path: '/v1/model-installer/models/:name/:repository/verify',
      params: twoSegments,
      handle: ({ params: { name, repository }, context }) =>
        verify(`${name}/${repository}`, context),
    }),

    endpoint({
      method: 'GET',
      path: '/v1/model-installer/storage',
      ...common,
      summary: 'Show the disk usage of models',
      description: 'Of the machine that responds.',
      responses: {
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
      handle: async () => ({ object: 'model_storage', ...(await models.usage()) }),
    }),
  ]
}

const sha256 = 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9'
const notFound = 'There is no installed model "org/tiny-gguf".'
const oneSegment = { name: 'The name of the model, with `%2F` for a slash.' }
const twoSegments = {
  name: 'The part of the model name before the slash.',
  repository: 'The part after the slash.',
}

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

const removal = {
  method: 'DELETE',
  ...common,
  summary: 'Delete an installed model',
  responses: {
    200: {
      description: 'The model is deleted.',
      content: json(deletedModel, {
        object: 'installed_model.deleted',
        name: modelExample.name,
        deleted: true,
        freed_bytes: 4_294_971_392,
      }),
    },
  },
  errors: {
    not_found: notFound,
    conflict: {
      code: 'model_in_use',
      message: '"org/tiny-gguf" is in use: 2 generations run with it.',
    },
  },
} as const

const verification = {
  method: 'POST',
  ...common,
  summary: 'Verify an installed model',
  description: `Compares all files with the hashes of their installation. The verification is followed, paused and cancelled like
a download. A changed file fails it with \`hash_mismatch\`, and the model counts as not verified. During a verification,
the same request returns it.`,
  responses: {
    202: {
      description: 'The verification is queued or active.',
      content: json(downloadRecord, { ...queuedExample, task: 'verify' }),
    },
  },
  errors: {
    not_found: notFound,
    conflict: {
      code: 'download_active',
      message: '"org/tiny-gguf" is being installed from hub:org/tiny-gguf@main.',
    },
  },
} as const
