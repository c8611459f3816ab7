import { type Endpoint, endpoint, json } from '#api/endpoint.ts'
import { percentDecoded } from '#lib/url.ts'
import type { AvailableModel, ModelResolver } from '#models/model-resolver.ts'
import { longContextMark } from '#models/names.ts'
import { type ModelInfo, modelInfo, modelInfos, newestFirst, unknownModel } from './model-info.ts'
import { type IdPage, idPage, invalidQuery, pageQuery } from './page-query.ts'

/** Clients append `/v1/models` or `/models` to a base URL that may end in `/v1`. */
const paths = ['/compat/v1/models', '/compat/models', '/compat/v1/v1/models']

type ModelEndpointsDeps = { modelResolver: Pick<ModelResolver, 'list' | 'find'> }

/** The models that the caller may name in a message. */
export function compatModelEndpoints(deps: ModelEndpointsDeps): Endpoint[] {
  return paths.flatMap((path) => [listEndpoint(path, deps), retrieveEndpoint(path, deps)])
}

function listEndpoint(path: string, { modelResolver }: ModelEndpointsDeps): Endpoint {
  return endpoint({
    method: 'GET',
    path,
    permission: 'can_access_api',
    tag: 'Messages',
    summary: 'List the models that you may call',
    description:
      'Models that generate text and the agents that you see, newest first; models without a date come last.',
    query: pageQuery('models'),
    responses: {
      200: {
        description: 'A page of models.',
        content: json(modelPage, {
          data: [exampleModel],
          has_more: false,
          first_id: exampleModel.id,
          last_id: exampleModel.id,
        }),
      },
    },
    errors: { invalid_request: 'before_id cannot be combined with after_id.' },
    async handle({ query, context }) {
      const models = (await modelResolver.list(context.principal)).filter(generatesText)
      return renderPage(newestFirst(models).flatMap(modelInfos), query)
    },
  })
}

function retrieveEndpoint(path: string, { modelResolver }: ModelEndpointsDeps): Endpoint {
  return endpoint({
    method: 'GET',
    path: `${path}/*`,
    permission: 'can_access_api',
    tag: 'Messages',
    summary: 'Retrieve a model',
    description: 'By any of its names.',
    params: { '*': 'The name. Slashes in it may be URL-encoded.' },
    responses: { 200: { description: 'The model.', content: json(modelInfo, exampleModel) } },
    errors: { model_not_found: 'model: llama-4' },
    async handle({ params, context }) {
      const name = percentDecoded(params['*'])
      const model = await modelResolver.find(context.principal, name)
      if (model === undefined || !generatesText(model)) throw unknownModel(name)
      const [plain, long = plain] = modelInfos(model)
      return name.endsWith(longContextMark) ? long : plain
    },
  })
}

function generatesText({ mode }: AvailableModel): boolean {
  return mode === 'generate'
}

function renderPage(models: readonly ModelInfo[], { limit, afterId, beforeId }: IdPage) {
  const start = afterId === null ? 0 : indexOfId(models, afterId, 'after_id') + 1
  const end = beforeId === null ? models.length : indexOfId(models, beforeId, 'before_id')
  const range = models.slice(start, end)
  // The page before a cursor ends at the cursor.
  const data = beforeId === null ? range.slice(0, limit) : range.slice(-limit)
  return {
    data,
    has_more: data.length < range.length,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

function indexOfId(models: readonly ModelInfo[], id: string, param: string): number {
  const index = models.findIndex((model) => model.id === id)
  if (index === -1) throw invalidQuery(param, 'must be the id of a model of the list')
  return index
}

const modelPage = idPage(modelInfo, 'ModelInfoPage')

const exampleModel = {
  type: 'model',
  id: 'vendor-model-llama-3.3-70b',
  display_name: 'llama-3.3-70b',
  created_at: '2026-11-21T09:30:00.000Z',
  max_input_tokens: 131_072,
  max_tokens: null,
  lifecycle: 'active',
  deprecated_at: null,
  retires_at: null,
  line: null,
  capabilities: null,
}
