import { afterAll, beforeAll, beforeEach } from 'bun:test'
import { createServer, type ServerResponse } from 'node:http'
import OpenAI, { toFile } from 'openai'
import type { Batch } from 'openai/resources/batches'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'

/** A chat upstream that remembers the text of each request, and holds those with the word "held". */
export async function startLineUpstream() {
  const asked: string[] = []
  const held = new Map<ServerResponse, string>()
  let onRequest = (_text: string, _response: ServerResponse): boolean => false
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    if (request.method !== 'POST') return void response.writeHead(404).end()
    const messages = asRecord(parseJson(body))['messages']
    const text = JSON.stringify(Array.isArray(messages) ? messages.at(-1) : messages)
    asked.push(text)
    response.on('close', () => held.delete(response))
    if (onRequest(text, response)) return
    if (text.includes('held')) return void held.set(response, text)
    answer(response, text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/v1`,
    asked: () => asked,
    held: () => [...held.values()],
    /** Replaces the answer; true: the response is dealt with. */
    intercept(next: typeof onRequest) {
      onRequest = next
    },
    release() {
      for (const [response, text] of held) answer(response, text)
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export type LineUpstream = Awaited<ReturnType<typeof startLineUpstream>>

const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }

function answer(response: ServerResponse, text: string): void {
  const message = { role: 'assistant', content: `Answer to ${text.length} characters.` }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ choices, usage }))
}

export async function startBatchGateway(
  upstream: LineUpstream,
  options: GatewayOptions = {},
): Promise<Gateway> {
  const entry = { url: upstream.url, models: ['m'], ...options.upstream?.[0] }
  return startGateway({ ...options, upstream: [entry] })
}

/** The upstream, the gateway and a client for the tests of one file. */
export function batchWorld(options: GatewayOptions = {}) {
  const world = {} as { upstream: LineUpstream; gateway: Gateway; client: OpenAI }
  beforeAll(async () => {
    world.upstream = await startLineUpstream()
    world.gateway = await startBatchGateway(world.upstream, options)
    world.client = await clientOf(world.gateway)
  })
  afterAll(async () => {
    await world.gateway.stop()
    await world.upstream.stop()
  })
  beforeEach(() => world.upstream.intercept(() => false))
  return world
}

/** A client of this user without retries. */
export async function clientOf(gateway: Gateway, subject = 'tester'): Promise<OpenAI> {
  return new OpenAI({
    baseURL: `${gateway.url}/v1`,
    apiKey: await gateway.token(['users'], subject),
    maxRetries: 0,
    fetch: checkedFetch,
  })
}

export const responseLine = (customId: string, body: JsonObject = {}) => ({
  custom_id: customId,
  method: 'POST',
  url: '/v1/responses',
  body: { model: 'm', input: customId, store: false, ...body },
})

/** The file of these lines: objects, or texts as they are. */
export async function uploadLines(
  client: OpenAI,
  lines: readonly (object | string)[],
): Promise<string> {
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
  const file = await toFile(Buffer.from(texts.join('\n')), 'lines.jsonl')
  return (await client.files.create({ file, purpose: 'batch' })).id
}

export async function createBatch(
  client: OpenAI,
  lines: readonly (object | string)[],
  endpoint: '/v1/responses' | '/v1/embeddings' = '/v1/responses',
): Promise<Batch> {
  return client.batches.create({
    input_file_id: await uploadLines(client, lines),
    endpoint,
    completion_window: '24h',
  })
}

const endings = ['completed', 'failed', 'expired', 'cancelled']

export async function ended(client: OpenAI, { id }: { id: string }): Promise<Batch> {
  let batch = await client.batches.retrieve(id)
  await eventually('the batch ends', async () => {
    batch = await client.batches.retrieve(id)
    return endings.includes(batch.status)
  })
  return batch
}

/** The lines of an output by custom id; none without a file. */
export async function linesOf(
  client: OpenAI,
  fileId: string | null | undefined,
): Promise<ReadonlyMap<string, JsonObject>> {
  if (typeof fileId !== 'string') return new Map()
  // A line of an error file looks like the body of an error.
  const plain = new OpenAI({ apiKey: client.apiKey, baseURL: client.baseURL, maxRetries: 0 })
  const text = await (await plain.files.content(fileId)).text()
  const lines = text.trimEnd().split('\n').map(parseJson).map(asRecord)
  return new Map(lines.map((line) => [String(line['custom_id']), line]))
}

export const bodyOf = (line: JsonObject | undefined) =>
  asRecord(asRecord(line?.['response'])['body'])
