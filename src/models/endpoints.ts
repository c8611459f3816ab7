import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { idExample } from '#api/shapes.ts'
import { percentDecoded } from '#lib/url.ts'
import { modelNotFound } from './catalogue.ts'
import { listForCodingClients } from './coding-clients.ts'
import type { ModelResolver } from './model-resolver.ts'
import { modelList, modelListQuery, modelRecord, renderModel, renderOtherModel } from './schema.ts'

/** The models that the caller may name in requests, including agents. */
export function modelEndpoints({
  modelResolver,
  builtInEmbedders,
  speechModels,
}: {
  modelResolver: Pick<ModelResolver, 'list' | 'listAliases' | 'find' | 'mayUseOther'>
  builtInEmbedders: readonly string[]
  /** The same array until a reload changes it. */
  speechModels: () => readonly string[]
}): Endpoint[] {
  let latest: readonly string[] | null = null
  let rendered = renderOthers([], [])
  const others = () => {
    const current = speechModels()
    if (current !== latest) rendered = renderOthers(builtInEmbedders, current)
    latest = current
    return rendered
  }
  return [
    endpoint({
      method: 'GET',
      path: '/v1/models',
      permission: 'can_access_api',
      tag: 'Models',
      summary: 'List the models',
      description: `Every value that you may send as \`model\`: the models of this deployment, their
aliases, built-in models of other modes, and the agents that you may call, newest first. The list is not paged.`,
      query: modelListQuery,
      responses: {
        200: {
          description: 'The models.',
          content: json(modelList, { object: 'list', data: [exampleModel, exampleAgent] }),
        },
      },
      async handle({ query, context }) {
        const models = await modelResolver.list(context.principal)
        const plain = models.filter(({ isAgent }) => !isAgent)
        const agents = models.filter(({ isAgent }) => isAgent)
        const catalogued = [...plain, ...modelResolver.listAliases(context.principal)].map(
          renderModel,
        )
        const names = new Set(catalogued.map(({ id }) => id))
        const built = [...others().values()].filter(
          ({ id }) => !names.has(id) && modelResolver.mayUseOther(context.principal, id),
        )
        const list = { object: 'list', data: [...catalogued, ...built, ...agents.map(renderModel)] }
        if (query.client_version === undefined) return list
        return { ...list, models: listForCodingClients(models) }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/models/*',
      permission: 'can_access_api',
      tag: 'Models',
      summary: 'Retrieve a model',
      description: 'By any of its names: the listed one, an alias, or the name with its prefix.',
      params: { '*': 'The name. Slashes in it may be URL-encoded.' },
      responses: { 200: { description: 'The model.', content: json(modelRecord, exampleModel) } },
      errors: { model_not_found: 'The model "llama-4" does not exist.' },
      async handle({ params, context }) {
        const name = percentDecoded(params['*'])
        const model = await modelResolver.find(context.principal, name)
        if (model !== undefined) return renderModel(model)
        const other = others().get(name)
        if (other !== undefined && modelResolver.mayUseOther(context.principal, name)) return other
        throw modelNotFound(name)
      },
    }),
  ]
}

/** Models outside the catalogue. */
function renderOthers(embedders: readonly string[], speechModels: readonly string[]) {
  const models = [
    ...embedders.map((id) => ({ id, mode: 'embed' as const })),
    ...speechModels.map((id) => ({ id, mode: 'transcribe' as const })),
  ]
  return new Map(models.map((model) => [model.id, renderOtherModel(model)]))
}

const exampleModel = {
  id: 'llama-3.3-70b',
  object: 'model',
  created: 1_795_253_400,
  owned_by: 'vllm',
  mode: 'generate',
  capabilities: ['tools'],
  context_window: 131_072,
}
const exampleAgent = {
  ...exampleModel,
  id: `vendor-agent-${idExample}`,
  owned_by: 'agent',
  name: 'Contract reader',
  description: 'Answers questions about our contracts.',
}
