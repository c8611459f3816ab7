import { acceptOf, HttpGeneration } from '#inference/http-generation.ts'
import { listBytesMax, readModelList } from '#inference/model-list.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { callIdsOf } from '#inference/tool-calls.ts'
import { createToolNames, type ToolNames } from '#inference/tools.ts'
import type {
  Adapter,
  AdapterContext,
  Upstream,
  UpstreamContext,
  UpstreamModel,
} from '#inference/upstream.ts'
import { readString, targetName } from '#inference/upstream-fields.ts'
import {
  postToCounter,
  readText as readBody,
  readCount,
  requireSuccess,
} from '#inference/upstream-http.ts'
import { cachedByKey } from '#lib/cached-by-key.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import { createLru } from '#lib/lru.ts'
import { MessagesDecoder } from './decode.ts'
import { encodeMessagesRequest } from './encode.ts'
import { encodeOrigin } from './origin.ts'
import { relayResponseError } from './relay.ts'

/** Upstreams that speak the Messages protocol natively. */
export const messages: Adapter = { generate, listModels, countTokens }

function generate(request: GenerationRequest, context: AdapterContext) {
  const { upstream, limits } = context
  return new HttpGeneration(context, pathOf(upstream, '/messages'), (streamed) => {
    const { origin } = request
    const { body, toolNames } = encode(request, context)
    return {
      body: JSON.stringify({ ...body, stream: streamed }),
      decoder: new MessagesDecoder({
        toolNames,
        sealedBy: targetName(context),
        takenCallIds: callIdsOf(request),
        toolArgumentCharsMax: limits.toolArgumentCharsMax,
        relays: origin !== undefined,
      }),
      headers: headersFor(upstream, acceptOf(streamed), origin?.headers),
      ...(origin === undefined ? {} : { relayError: relayResponseError }),
    }
  })
}

type Encoded = { body: object; toolNames: Pick<ToolNames, 'head'> }

/** The body of a request; nearly unchanged where its client speaks the same protocol. */
function encode(request: GenerationRequest, context: AdapterContext): Encoded {
  const { origin } = request
  const { model, upstream } = context
  const target = { model, targetName: targetName(context), quirks: upstream.quirks }
  if (origin !== undefined) {
    // Which tools may be called is between the client and the upstream.
    return { body: encodeOrigin(origin, target), toolNames: unchangedNames }
  }
  const toolNames = createToolNames(request)
  return { body: encodeMessagesRequest(request, { ...target, toolNames }), toolNames }
}

const unchangedNames: Pick<ToolNames, 'head'> = { head: (name) => ({ name, form: 'function' }) }

/** The fields of a message request that POST /messages/count_tokens does not accept. */
const uncountedFields = [
  'max_tokens',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'metadata',
  'service_tier',
  'container',
  'inference_geo',
  'diagnostics',
]

async function countTokens(
  request: GenerationRequest,
  context: AdapterContext,
): Promise<number | null> {
  const { upstream } = context
  const fields = Object.entries(encode(request, context).body)
  const counted = await postToCounter(context, {
    url: upstream.baseUrl + pathOf(upstream, '/messages/count_tokens'),
    body: Object.fromEntries(fields.filter(([name]) => !uncountedFields.includes(name))),
    headers: headersFor(upstream, 'application/json', request.origin?.headers),
  })
  return counted === null ? null : readCount(counted['input_tokens'])
}

/** The most that the protocol returns at once. */
const modelsPerPage = 1_000
const pagesMax = 10

/** The models that an upstream offers: GET /v1/models, page by page. */
async function listModels(context: UpstreamContext): Promise<readonly UpstreamModel[]> {
  const models = new Map<string, UpstreamModel>()
  let after = ''
  for (let page = 0; page < pagesMax; page++) {
    const body = await fetchModelPage(context, after)
    for (const model of readModelList(body)) models.set(model.id, model)
    const last = readLastId(body)
    if (last === '' || last === after) break
    after = last
  }
  return [...models.values()]
}

async function fetchModelPage(
  { upstream, transport, signal }: UpstreamContext,
  after: string,
): Promise<string> {
  const query = new URLSearchParams({ limit: String(modelsPerPage) })
  if (after !== '') query.set('after_id', after)
  const response = await transport.send({
    upstream: upstream.name,
    url: `${upstream.baseUrl}${pathOf(upstream, '/models')}?${query}`,
    method: 'GET',
    headers: headersFor(upstream, 'application/json'),
    signal,
  })
  await requireSuccess(response, upstream)
  return readBody(response, listBytesMax)
}

/** The id after which the next page begins; empty after the last page. */
function readLastId(body: string): string {
  const page = parseJson(body)
  return isRecord(page) && page['has_more'] === true ? readString(page['last_id']) : ''
}

/** Configured base URLs end in /v1, as those of other protocols do, or not. */
function pathOf(upstream: Upstream, resource: string): string {
  return (upstream.baseUrl.endsWith('/v1') ? '' : '/v1') + resource
}

/** The protocol version of requests that Sluice composes. */
const defaultVersion = '2023-06-01'

type Headers = Readonly<Record<string, string>>

/** Sets of headers that are kept: of each version and beta features, and of the latest sessions. */
const headerSetsMax = 64

const headerSets = cachedByKey((_: Upstream) => createLru<string, Headers>(headerSetsMax))

/** The headers of a request; the same set for the same client headers, which the transport keeps rendered. */
function headersFor(upstream: Upstream, accept: string, clientHeaders: Headers = {}): Headers {
  const sets = headerSets(upstream)
  const key = keyOf(accept, clientHeaders)
  const known = sets.get(key)
  if (known !== undefined) return known
  const headers = buildHeaders(upstream, accept, clientHeaders)
  sets.set(key, headers)
  return headers
}

/** Neither names nor values have line breaks. */
function keyOf(accept: string, clientHeaders: Headers): string {
  let key = accept
  for (const name in clientHeaders) key += `\n${name}\n${clientHeaders[name]}`
  return key
}

/**
 * The version and beta features that a client of the same protocol sends apply to its body; other
 * configured headers replace those of the client.
 */
function buildHeaders(upstream: Upstream, accept: string, clientHeaders: Headers): Headers {
  const configured = Object.fromEntries(
    Object.entries(upstream.headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const betas = [configured['anthropic-beta'], clientHeaders['anthropic-beta']]
  const beta = betas.filter((names) => names !== undefined && names !== '').join(',')
  return {
    ...clientHeaders,
    ...credential(upstream),
    ...configured,
    'anthropic-version':
      clientHeaders['anthropic-version'] ?? configured['anthropic-version'] ?? defaultVersion,
    ...(beta === '' ? {} : { 'anthropic-beta': beta }),
    accept,
    'content-type': 'application/json',
  }
}

function credential({ key, quirks }: Upstream): Record<string, string> {
  if (key === undefined) return {}
  return quirks.keyHeader === 'x-api-key'
    ? { 'x-api-key': key }
    : { authorization: `Bearer ${key}` }
}
