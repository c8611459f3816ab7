import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { asRecord } from '#lib/json.ts'
import { ann, bob, fillCollection } from '#test/support/fill-collection.ts'
import { type MessageClients, sdks, startMessageClients } from '#test/support/message-clients.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Responses of agents that search collections, on the Messages surface. */

let clients: MessageClients
let fileIds: Readonly<Record<string, string>>
let demo: string
let chat: string
beforeAll(async () => {
  clients = await startMessageClients()
  const { gateway } = clients
  const filled = await fillCollection(gateway, ann, {
    name: 'docs',
    files: { 'leave.txt': leaveText, 'travel.txt': 'Trains are booked by the travel desk.' },
  })
  fileIds = filled.fileIds
  const makeAgent = async (model: string) => {
    const visibility = { kind: 'everyone' }
    const body = { name: model, model, collections: ['docs'], visibility }
    const made = asRecord(await (await gateway.post('/v1/agents', body)).json())
    return String(made['model_id'])
  }
  demo = await makeAgent('demo-fast')
  chat = await makeAgent('chat')
})
afterAll(() => clients.stop())

const leaveText = 'Holiday may be carried over until March.'
const question = 'Until when may holiday be carried over?'
const body = (model: string) => ({
  model,
  max_tokens: 500,
  messages: [{ role: 'user' as const, content: question }],
})

const citation = (number = 1) => ({
  type: 'search_result_location',
  cited_text: leaveText,
  search_result_index: number - 1,
  source: `/v1/files/${fileIds['leave.txt']}`,
  title: 'leave.txt',
  start_block_index: 0,
  end_block_index: 1,
})

/** The model searches first, and then sends this text. */
function scriptChat(...pieces: readonly string[]): void {
  const args = JSON.stringify({ queries: ['holiday'] })
  const call = { index: 0, id: 'a', function: { name: 'file_search', arguments: args } }
  const answers = [
    chatStream([chunk({ tool_calls: [call] }), chunk({}, 'tool_calls')]),
    chatStream([...pieces.map((content) => chunk({ content })), chunk({}, 'stop')]),
  ]
  clients.upstream.answer(() => ({ body: answers.shift() ?? '' }))
}

const plain = ({ content }: Anthropic.Message): object[] => JSON.parse(JSON.stringify(content))

describe.each(sdks)('the package $sdk', ({ Sdk }) => {
  test('receives cited output in blocks that it supports', async () => {
    const message = await clients.client(Sdk).messages.create(body(demo))
    expect(plain(message)).toEqual([
      { type: 'text', text: `It says in leave.txt: "${leaveText}"`, citations: [citation()] },
      {
        type: 'text',
        text: '\n\nI am a demo model and run without a network.',
      },
    ])
    expect(message.stop_reason).toBe('end_turn')
  })

  test('receives the same as a stream, including the citation', async () => {
    const client = clients.client(Sdk)
    const whole = await client.messages.create(body(demo))
    const citations: unknown[] = []
    const stream = client.messages.stream(body(demo))
    stream.on('citation', (citation) => citations.push(citation))
    expect(plain(await stream.finalMessage())).toEqual(plain(whole))
    expect(citations).toEqual([citation()])
  })

  test('receives the same however the model splits its output', async () => {
    const said = 'Until March 【1】【2】, so 【1】. By train'
    const client = clients.client(Sdk)
    for (let cut = 0; cut <= said.length; cut++) {
      scriptChat(said.slice(0, cut), said.slice(cut))
      const message = await client.messages.stream(body(chat)).finalMessage()
      expect(plain(message)).toMatchObject([
        { text: 'Until March', citations: [citation(), { title: 'travel.txt' }] },
        { text: ', so', citations: [citation()] },
        { text: '. By train' },
      ])
    }
  })

  test('can send the message back', async () => {
    scriptChat('Until March 【1】. And so on.')
    const client = clients.client(Sdk)
    const first = await client.messages.create(body(chat))
    scriptChat('Yes.')
    const { messages } = body(chat)
    await client.messages.create({
      ...body(chat),
      messages: [
        ...messages,
        { role: 'assistant', content: first.content },
        { role: 'user', content: 'Really?' },
      ],
    })
    const { messages: sent } = clients.asked()
    const said = (sent as { role: string; content: unknown }[]).map(({ content }) => content)
    expect(said).toContain('Until March. And so on.')
  })
})

test('output without citations has none', async () => {
  scriptChat('Nobody knows.')
  const message = await clients.client(sdks[0].Sdk).messages.create(body(chat))
  expect(plain(message)).toEqual([{ type: 'text', text: 'Nobody knows.' }])
})

test('a user without access to the collections receives nothing from them', async () => {
  scriptChat('Nobody knows 【1】.')
  const authToken = await clients.gateway.token(bob.groups, bob.subject)
  const client = clients.client(sdks[0].Sdk, { apiKey: null, authToken })
  const message = await client.messages.create(body(chat))
  expect(plain(message)).toMatchObject([{ text: 'Nobody knows 【1】.' }])
  const prompt = JSON.stringify(clients.asked()['messages'])
  expect(prompt).toContain('1 of the 1 collections')
  expect(prompt).not.toContain('March')
})
