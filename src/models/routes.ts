import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { modelNotFound } from './catalogue.ts'
import { listForCodingClients } from './coding-clients.ts'
import type { AvailableModel, ModelResolver } from './model-resolver.ts'
import { decodeName } from './names.ts'
import { modelOperations } from './operations.ts'
import type { ModelRecord } from './schema.ts'

/** `GET /v1/models`: what the caller may name as a model, the agents that they see included. */
export function modelRoutes(deps: {
  auth: Auth
  modelResolver: Pick<ModelResolver, 'list' | 'find'>
}) {
  const { auth, modelResolver } = deps
  return new Elysia({ name: 'models', prefix: '/v1/models' })
    .use(guard(auth))
    .get(
      '/',
      async ({ principal, query }) => {
        const models = await modelResolver.list(principal)
        const list = { object: 'list', data: models.map(renderModel) }
        // Who tells its version is a coding client, and reads a list of another shape beside it.
        if (query['client_version'] === undefined) return list
        return { ...list, models: listForCodingClients(models) }
      },
      { requires: 'can_access_api', detail: modelOperations.list },
    )
    .get(
      // A model name may hold slashes: `org/name`.
      '/*',
      async ({ params, principal }) => {
        const name = decodeName(params['*'])
        const model = await modelResolver.find(principal, name)
        if (model === undefined) throw modelNotFound(name)
        return renderModel(model)
      },
      { requires: 'can_access_api', detail: modelOperations.show },
    )
}

function renderModel(model: AvailableModel): ModelRecord {
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: model.ownedBy,
    ...(model.isAgent ? { name: model.displayName, description: model.description } : {}),
    mode: model.mode,
    capabilities: model.capabilities,
    context_window: model.contextWindow,
  }
}
