import { listBytesMax, readModelList } from '#inference/model-list.ts'
import type { UpstreamContext, UpstreamModel } from '#inference/upstream.ts'
import { readText as readBody, requireSuccess } from '#inference/upstream-http.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { headersFor, pathOf } from './endpoint.ts'
import { readText } from './wire.ts'

/** As many as the protocol gives at once. */
const modelsPerPage = 1_000
const pagesMax = 10

/** The models that an upstream offers: GET /v1/models, page by page. */
export async function listModels(context: UpstreamContext): Promise<readonly UpstreamModel[]> {
  const models = new Map<string, UpstreamModel>()
  let after = ''
  for (let page = 0; page < pagesMax; page++) {
    const body = await fetchPage(context, after)
    for (const model of readModelList(body)) models.set(model.id, model)
    const last = readLastId(body)
    if (last === '' || last === after) break
    after = last
  }
  return [...models.values()]
}

async function fetchPage(
  { upstream, transport, signal }: UpstreamContext,
  after: string,
): Promise<string> {
  const query = new URLSearchParams({ limit: String(modelsPerPage) })
  if (after !== '') query.set('after_id', after)
  const answer = await transport.send({
    upstream: upstream.name,
    url: `${upstream.baseUrl}${pathOf(upstream, '/models')}?${query}`,
    method: 'GET',
    headers: headersFor(upstream, 'application/json'),
    signal,
  })
  await requireSuccess(answer, upstream)
  return readBody(answer, listBytesMax)
}

/** Where the next page begins; empty where there is none. */
function readLastId(body: string): string {
  const page = parseJson(body)
  return isRecord(page) && page['has_more'] === true ? readText(page['last_id']) : ''
}
