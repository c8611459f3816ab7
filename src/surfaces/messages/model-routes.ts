import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import { AppError } from '#lib/errors.ts'
import type { AvailableModel, ModelResolver } from '#models/model-resolver.ts'
import { decodeName, longContextMark } from '#models/names.ts'
import type { ModelInfo } from './description/model-info.ts'
import { compatModelOperations } from './description/model-operations.ts'
import { modelInfos, newestFirst } from './model-info.ts'
import { unknownModel } from './unknown-model.ts'

const requires = 'can_access_api' satisfies Permission

/** Clients append `/v1/models` to their base or only `/models`, and bases end in `/v1` or not. */
const paths = ['/v1/models', '/models', '/v1/v1/models']

/** `GET /compat/v1/models`: what the caller may name as a model, in pages. */
export function compatModelRoutes(deps: {
  auth: Auth
  modelResolver: Pick<ModelResolver, 'list' | 'find'>
}) {
  const { auth, modelResolver } = deps
  const app = new Elysia({ name: 'compat-models', prefix: '/compat' }).use(guard(auth))
  return paths.reduce(
    (routes, path) =>
      routes
        .get(
          path,
          async ({ principal, request }) => {
            const page = readPage(new URL(request.url).searchParams)
            const models = (await modelResolver.list(principal)).filter(answersMessages)
            return renderPage(newestFirst(models).flatMap(modelInfos), page)
          },
          { requires, detail: compatModelOperations.list },
        )
        .get(
          // A model name may hold slashes: `org/name`.
          `${path}/*`,
          async ({ principal, params }) => {
            const name = decodeName(params['*'])
            const model = await modelResolver.find(principal, name)
            if (model === undefined || !answersMessages(model)) throw unknownModel(name)
            const [plain, long = plain] = modelInfos(model)
            return name.endsWith(longContextMark) ? long : plain
          },
          { requires, detail: compatModelOperations.show },
        ),
    app,
  )
}

function answersMessages({ mode }: AvailableModel): boolean {
  return mode === 'generate'
}

type PageQuery = { limit: number; afterId: string | null; beforeId: string | null }

const limits = { default: 20, max: 1_000 }

function readPage(query: URLSearchParams): PageQuery {
  const limit = query.get('limit') ?? String(limits.default)
  if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > limits.max) {
    throw badQuery('limit', `must be a whole number from 1 to ${limits.max}`)
  }
  const afterId = query.get('after_id') || null
  const beforeId = query.get('before_id') || null
  if (afterId !== null && beforeId !== null) {
    throw badQuery('before_id', 'does not go with after_id')
  }
  return { limit: Number(limit), afterId, beforeId }
}

function renderPage(entries: readonly ModelInfo[], { limit, afterId, beforeId }: PageQuery) {
  const behind = afterId === null ? 0 : placeOf(entries, afterId, 'after_id') + 1
  const end = beforeId === null ? entries.length : placeOf(entries, beforeId, 'before_id')
  const wanted = entries.slice(behind, end)
  // Going back, the page is the one right before the cursor.
  const data = beforeId === null ? wanted.slice(0, limit) : wanted.slice(-limit)
  return {
    data,
    has_more: data.length < wanted.length,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

function placeOf(entries: readonly ModelInfo[], id: string, param: string): number {
  const place = entries.findIndex((entry) => entry.id === id)
  if (place === -1) throw badQuery(param, 'must be the id of a model of the list')
  return place
}

function badQuery(param: string, predicate: string): AppError {
  return new AppError('invalid_request', `${param} ${predicate}.`, { param })
}
