import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, json, type QueryReader } from '#api/endpoint.ts'
import { nullable } from '#api/shapes.ts'
import { AppError } from '#lib/errors.ts'
import { percentDecoded } from '#lib/url.ts'
import type { AvailableModel, ModelResolver } from '#models/model-resolver.ts'
import { longContextMark } from '#models/names.ts'
import { type ModelInfo, modelInfo, modelInfos, newestFirst, unknownModel } from './model-info.ts'

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
    query: pageQuery,
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

type PageQuery = { limit: number; afterId: string | null; beforeId: string | null }

const limitDefault = 20
const limitMax = 1_000

/** Clients of this protocol expect status 400. */
const pageQuery: QueryReader<PageQuery> = {
  schema: Type.Object({
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limitMax,
        default: limitDefault,
        description: 'Models per page.',
      }),
    ),
    after_id: Type.Optional(Type.String({ description: 'Only models after this id.' })),
    before_id: Type.Optional(
      Type.String({ description: 'Only models before this id. Not with `after_id`.' }),
    ),
  }),
  read(query) {
    const limit = query.get('limit') ?? String(limitDefault)
    if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > limitMax) {
      throw invalidQuery('limit', `must be an integer from 1 to ${limitMax}`)
    }
    const afterId = query.get('after_id') || null
    const beforeId = query.get('before_id') || null
    if (afterId !== null && beforeId !== null) {
      throw invalidQuery('before_id', 'cannot be combined with after_id')
    }
    return { limit: Number(limit), afterId, beforeId }
  },
}

function renderPage(models: readonly ModelInfo[], { limit, afterId, beforeId }: PageQuery) {
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

function invalidQuery(param: string, predicate: string): AppError {
  return new AppError('invalid_request', `${param} ${predicate}.`, { param })
}

const modelPage = Type.Object(
  {
    data: Type.Array(modelInfo),
    has_more: Type.Boolean({ description: 'Whether another page follows in this direction.' }),
    first_id: nullable(Type.String(), 'The id of the first model of this page.'),
    last_id: nullable(Type.String(), 'The id of its last model.'),
  },
  { $id: 'ModelInfoPage' },
)

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
