import Anthropic from '@anthropic-ai/sdk'
import OlderAnthropic from '@anthropic-ai/sdk-0137'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { systemPrincipal } from '#lib/request-context.ts'
import { checkedFetch } from './checked-fetch.ts'
import { eventually } from './eventually.ts'
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts'
import {
  type ReplayAnswer,
  type ReplayRequest,
  type ReplayUpstream,
  startReplayUpstream,
} from './replay-upstream.ts'
import { chatAnswer, nativeAnswer } from './scripted-answers.ts'
import { messagesAnswer } from './scripted-messages.ts'

/** The package with its two dialects, whose methods have the same names. */
export const sdks = [
  { sdk: '1.14', version: '2026-10-21', Sdk: Anthropic },
  { sdk: '0.137', version: '2023-06-01', Sdk: OlderAnthropic as unknown as typeof Anthropic },
] as const

/** The upstream behind the gateway, and its models of each kind. */
export const messageKinds = [
  {
    kind: 'demo',
    model: 'demo-fast',
    tools: 'demo-tools',
    reasoning: 'demo-reasoning',
    slow: 'demo-quiet',
  },
  { kind: 'chat', model: 'chat', tools: 'chat', reasoning: 'chat', slow: 'chat' },
  {
    kind: 'responses',
    model: 'responses',
    tools: 'responses',
    reasoning: 'responses',
    slow: 'responses',
  },
  {
    kind: 'messages',
    model: 'messages',
    tools: 'messages',
    reasoning: 'messages',
    slow: 'messages',
  },
] as const

export type MessageKind = (typeof messageKinds)[number]['kind']

/** Every package over every kind of upstream. */
export const sdkMatrix = sdks.flatMap((row) => messageKinds.map((kind) => ({ ...row, ...kind })))

type ClientOptions = ConstructorParameters<typeof Anthropic>[0]

export type MessageClients = {
  gateway: Gateway
  /** All three kinds of upstream, distinguished by the path of a request. */
  upstream: ReplayUpstream
  /** The last upstream request. */
  asked(): JsonObject
  /** The number of generation requests. */
  asks(): number
  /** With this option the older package sends `x-api-key`, and the newer one a bearer token. */
  apiKey: string
  /** A client without retries, unless configured. */
  client(Sdk: typeof Anthropic, options?: ClientOptions): Anthropic
  stop(): Promise<void>
}

const json = { 'content-type': 'application/json' }

const generationPaths = /\/(chat\/completions|responses|messages)$/

function generationsOf({ requests }: ReplayUpstream): ReplayRequest[] {
  return requests.filter(({ path }) => generationPaths.test(path))
}

/** A response to the content and in the protocol of the request. */
export function scriptedAnswer({ path, body }: ReplayRequest): ReplayAnswer {
  if (path.endsWith('/models')) return { headers: json, body: '{"data":[]}' }
  if (!generationPaths.test(path)) return { status: 404, headers: json, body: '{}' }
  if (path.endsWith('/chat/completions')) return { body: chatAnswer(body) }
  return path.endsWith('/responses') ? { body: nativeAnswer(body) } : messagesAnswer(body)
}

export async function startMessageClients(options: GatewayOptions = {}): Promise<MessageClients> {
  const upstream = await startReplayUpstream(scriptedAnswer)
  const url = upstream.baseUrl
  const gateway = await startGateway({
    upstream: [
      { api: 'demo' },
      { url, models: ['chat'] },
      { url, api: 'responses', models: ['responses'] },
      { url, api: 'messages', models: ['messages'], files: true },
    ],
    ...options,
  })
  const { catalogue } = gateway.deps
  const created = await gateway.post('/v1/api-keys', { name: 'client' })
  const apiKey = String(asRecord(await created.json())['key'])
  await eventually(
    'the demo is there',
    () => catalogue.find(systemPrincipal, 'demo-fast') !== undefined,
  )
  return {
    gateway,
    upstream,
    asked: () => JSON.parse(generationsOf(upstream).at(-1)?.body ?? '{}'),
    asks: () => generationsOf(upstream).length,
    apiKey,
    client: (Sdk, given = {}) => {
      const baseURL = `${gateway.url}/compat`
      return new Sdk({ baseURL, apiKey, maxRetries: 0, fetch: checkedFetch, ...given })
    },
    async stop() {
      await gateway.stop()
      await upstream.stop()
    },
  }
}
