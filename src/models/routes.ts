import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { type Catalogue, type Model, modelNotFound } from './catalogue.ts'
import { listForCodingClients } from './coding-clients.ts'

/** `GET /v1/models`: the authoritative list of model names. */
export function modelRoutes(deps: { auth: Auth; catalogue: Catalogue }) {
  const { auth, catalogue } = deps
  return new Elysia({ name: 'models', prefix: '/v1/models' })
    .use(guard(auth))
    .get(
      '/',
      ({ query }) => {
        const models = catalogue.list()
        const list = { object: 'list', data: models.map(renderModel) }
        // Who tells its version is a coding client, and reads a list of another shape beside it.
        if (query['client_version'] === undefined) return list
        return { ...list, models: listForCodingClients(models) }
      },
      { requires: 'can_access_api', detail: { tags: ['Models'], summary: 'List the models' } },
    )
    .get(
      // A model name may hold slashes: `org/name`.
      '/*',
      ({ params }) => {
        const name = decodeName(params['*'])
        const model = catalogue.find(name)
        if (model === undefined) throw modelNotFound(name)
        return renderModel(model)
      },
      { requires: 'can_access_api', detail: { tags: ['Models'], summary: 'Show a model' } },
    )
}

/** A name that is not properly encoded is looked up as it stands, and not found. */
function decodeName(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

function renderModel(model: Model) {
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: model.ownedBy,
    mode: model.mode,
    capabilities: model.capabilities,
    context_window: model.contextWindow,
  }
}
