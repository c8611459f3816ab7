import { createServer, type IncomingHttpHeaders } from 'node:http'
import OpenAI from 'openai'
import type { JsonObject } from '#lib/json.ts'
import { clientOf, startBatchGateway, startLineUpstream } from '#test/batches/world.ts'
import { checkedFetch } from '#test/support/checked-fetch.ts'

export type Received = {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Remembers the requests to each path; `/endless` gets a body without end. */
async function startReceiver() {
  const received: Received[] = []
  const state = { status: 200, headers: {} as Record<string, string> }
  let endless = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    received.push({ path: request.url ?? '', headers: request.headers, body })
    if (request.url === '/endless') {
      response.writeHead(200)
      endless++
      const sending = setInterval(() => response.write('x'.repeat(10_000)), 1)
      response.on('close', () => {
        clearInterval(sending)
        endless--
      })
      return
    }
    response.writeHead(state.status, state.headers).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    state,
    endless: () => endless,
    at: (path: string) => received.filter((one) => one.path === path),
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const allTypes = [
  'batch.completed',
  'batch.failed',
  'batch.cancelled',
  'response.completed',
] as const

/** A gateway that may send events to a receiver on this machine. */
export async function startWebhookWorld() {
  const upstream = await startLineUpstream()
  const receiver = await startReceiver()
  const gateway = await startBatchGateway(upstream, {
    webhooks: { privateHosts: ['127.0.0.1', 'localhost'], perOwnerMax: 4 },
  })
  const client = await clientOf(gateway)
  const apiKey = await gateway.token(['admins', 'users'], 'root')
  const baseURL = `${gateway.url}/v1`
  const admin = new OpenAI({ baseURL, apiKey, maxRetries: 0, fetch: checkedFetch })
  return {
    gateway,
    receiver,
    client,
    admin,
    create: (path: string, change: JsonObject = {}, by = client) =>
      by.webhooks.create({
        name: 'Hook',
        url: receiver.url + path,
        event_types: [...allTypes],
        ...change,
      } as Parameters<typeof by.webhooks.create>[0]),
    async deliveriesOf(id: string, by = client): Promise<JsonObject[]> {
      const response = await fetch(`${baseURL}/webhook_endpoints/${id}/deliveries`, {
        headers: { authorization: `Bearer ${by.apiKey}` },
      })
      return Object(await response.json()).data
    },
    async stop() {
      await gateway.stop()
      await receiver.stop()
      await upstream.stop()
    },
  }
}

export type WebhookWorld = Awaited<ReturnType<typeof startWebhookWorld>>
