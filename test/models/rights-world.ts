import type { JsonObject } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'

/** A gateway with models that some groups may use. */

export let gateway: Gateway
export let first: ReplayUpstream
export let second: ReplayUpstream
/** Tokens. */
export let staff: string
export let other: string
/** Of a member of staff, for two open models. */
export let openKey: string
/** Agents of a member of staff, shared with everyone. */
export let openAgent: string
export let secretAgent: string

const json = { 'content-type': 'application/json' }
const vector = '{"data":[{"index":0,"embedding":[1,0,0]}]}'

export async function startRightsWorld(): Promise<void> {
  first = await startReplayUpstream(({ path, body }) =>
    path.endsWith('/embeddings') ? { headers: json, body: vector } : { body: chatAnswer(body) },
  )
  second = await startReplayUpstream(({ body }) => ({ body: chatAnswer(body) }))
  const server = { upstreams: ['first'], upstreamModel: 'm' }
  gateway = await startGateway({
    upstream: [
      {
        name: 'first',
        url: first.baseUrl,
        models: ['listed-open', 'listed-secret', 'listed-shared', 'secret'],
        access: [
          { models: '*-secret', groups: ['staff'] },
          { models: 'listed-sh*', groups: ['staff'] },
          { models: '*-shared', groups: ['guests'] },
          { models: 'secret', groups: ['guests'] },
        ],
      },
      { name: 'down', url: 'http://127.0.0.1:1/v1', models: [] },
      { name: 'second', url: second.baseUrl, models: ['listed-shared'] },
    ],
    model: [
      { ...server, name: 'open', aliases: ['plain'] },
      { ...server, name: 'secret', aliases: ['hidden'], groups: ['staff', 'directors'] },
      { name: 'with-fallback', upstreams: ['down'], fallbacks: ['stand-in'] },
      { name: 'stand-in', upstreams: ['second'], groups: ['staff'] },
      { ...server, name: 'embedder', mode: 'embed', groups: ['staff'] },
      { ...server, name: 'sorter', mode: 'rerank', groups: ['staff'] },
      { ...server, name: 'whisper-1', mode: 'transcribe', groups: ['staff'] },
    ],
    engine: [{ name: 'demo' }],
  })
  staff = await gateway.token(['users', 'staff'], 'sam')
  other = await gateway.token(['users'], 'otto')
  const share = async (name: string, model: string) => {
    const body = { name, model, visibility: { kind: 'everyone' } }
    return String((await send(staff, 'POST /v1/agents', body)).body['model_id'])
  }
  openAgent = await share('Open', 'open')
  secretAgent = await share('Secret', 'secret')
  openKey = await makeKey({ models: ['open', 'listed-open'] })
}

export async function stopRightsWorld(): Promise<void> {
  await gateway.stop()
  await Promise.all([first.stop(), second.stop()])
}

export async function send(bearer: string, operation: string, json?: unknown) {
  const [method = '', path = ''] = operation.split(' ')
  const response = await gateway.request(path, {
    method,
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  })
  const text = await response.text()
  const body: JsonObject = JSON.parse(text)
  return { status: response.status, body, text }
}

export const ask = (bearer: string, model: string) =>
  send(bearer, 'POST /v1/responses', { model, input: 'Hi', store: false })

export async function makeKey(fields: object, bearer = staff): Promise<string> {
  const { body } = await send(bearer, 'POST /v1/api-keys', { name: 'k', ...fields })
  return String(body['key'])
}

export async function listedNames(bearer: string, path = '/v1/models'): Promise<string[]> {
  const { body } = await send(bearer, `GET ${path}`)
  return Object(body['data']).map(({ id }: { id: string }) => id)
}
