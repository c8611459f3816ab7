import { afterAll, beforeAll, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'

let upstream: ReplayUpstream
let gateway: Gateway
let client: OpenAI
/** The request bodies of the model. */
const requestBodies: string[] = []

beforeAll(async () => {
  upstream = await startReplayUpstream(({ path, body }) => {
    if (path.endsWith('/models')) {
      return { headers: { 'content-type': 'application/json' }, body: '{"data":[{"id":"m"}]}' }
    }
    requestBodies.push(body)
    const delta = { content: `answer ${requestBodies.length}` }
    return { body: chatStream([{ choices: [{ index: 0, delta, finish_reason: 'stop' }] }]) }
  })
  gateway = await startGateway({ upstream: [{ url: upstream.baseUrl }] })
  client = await gateway.openai()
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const textsIn = async (id: string) => {
  const items = await Array.fromAsync(client.conversations.items.list(id, { order: 'asc' }))
  return items.map((item) => Object(item).content[0].text)
}

test('each turn of a conversation gets the previous turns, and is stored for the next', async () => {
  const { id } = await client.conversations.create({
    items: [{ role: 'developer', content: 'Be brief.' }],
  })
  const first = await client.responses.create({ model: 'm', input: 'one', conversation: id })
  expect(first.conversation).toEqual({ id })
  expect(await textsIn(id)).toEqual(['Be brief.', 'one', 'answer 1'])
  const second = client.responses.stream({ model: 'm', input: 'two', conversation: { id } })
  expect((await second.finalResponse()).output_text).toBe('answer 2')
  expect(await textsIn(id)).toEqual(['Be brief.', 'one', 'answer 1', 'two', 'answer 2'])
  const messages: unknown[] = JSON.parse(requestBodies[1] ?? '{}').messages
  const contents = messages.map((message) => Object(message).content)
  expect(contents).toEqual(['Be brief.', 'one', 'answer 1', 'two'])
})

test('an unknown conversation, or one of another user, is not found', async () => {
  const { id } = await client.conversations.create()
  const apiKey = await gateway.token(['users'], 'a stranger')
  const otherUser = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 })
  const failures = await Promise.all(
    [
      client.responses.create({ model: 'm', input: 'x', conversation: 'conv_none' }),
      otherUser.responses.create({ model: 'm', input: 'x', conversation: id }),
    ].map((answer) => answer.catch(({ status, param }) => ({ status, param }))),
  )
  expect(failures).toEqual([
    { status: 404, param: 'conversation' },
    { status: 404, param: 'conversation' },
  ] as unknown[] as typeof failures)
  expect(await textsIn(id)).toEqual([])
})
