import { afterAll, afterEach, beforeAll } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { begun, stopUpstreams, upstreamThat, whole } from '#test/support/generations.ts'
import type { ReplayAnswer, ReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { openSocket, type SocketClient } from '#test/support/socket-client.ts'
import { chatPrompt } from '#test/support/socket-log.ts'

/** A gateway whose upstream tells a story that does not end; for the tests of a file. */

export let upstream: ReplayUpstream
export let gateway: Gateway
let token: string
const clients: SocketClient[] = []

export function useStory(): void {
  beforeAll(async () => {
    upstream = await upstreamThat({ body: whole })
    gateway = await startGateway({
      upstream: [{ url: upstream.baseUrl, models: ['m'] }, { api: 'demo' }],
    })
    token = await gateway.token()
  })
  afterEach(async () => {
    for (const { socket } of clients.splice(0)) socket.destroy()
    upstream.answer({ body: whole })
    upstream.cut()
    await eventually('nothing runs', () => gateway.deps.inference.running() === 0)
  })
  afterAll(async () => {
    await gateway.stop()
    await stopUpstreams()
  })
}

export async function open(headers: Record<string, string> = {}): Promise<SocketClient> {
  const authorization = `Bearer ${token}`
  const client = await openSocket(gateway.port, { headers: { authorization, ...headers } })
  clients.push(client)
  return client
}

export const hanging: ReplayAnswer = { body: begun, ending: 'hang' }
export const tool = { type: 'function', name: 'get_weather', parameters: { type: 'object' } }
export const called = chunk({
  tool_calls: [
    { index: 0, id: 'call_a', type: 'function', function: { name: 'get_weather', arguments: '{' } },
  ],
})

/** Begins a response, which runs until it is steered, and returns its id. */
export async function begin(
  client: SocketClient,
  body: object = {},
  answer: ReplayAnswer = hanging,
  untilText = 'output_text.delta',
): Promise<string> {
  upstream.answer(({ body: sent }) =>
    chatPrompt(sent).at(-1) === 'user: long story' ? answer : { body: whole },
  )
  client.send({ type: 'response.create', model: 'm', input: 'long story', store: false, ...body })
  await eventually('it speaks', () => client.texts.some((text) => text.includes(untilText)))
  return JSON.parse(client.texts[0] ?? '').response.id
}
export const steer = (client: SocketClient, id: string, input: unknown = 'shorter') =>
  client.send({ type: 'response.steer', previous_response_id: id, input })
export const has = (client: SocketClient, text: string) =>
  client.texts.some((one) => one.includes(text))
export const lastPrompt = () => chatPrompt(upstream.requests.at(-1)?.body ?? '')
