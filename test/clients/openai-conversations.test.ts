import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import type { ConversationItem } from 'openai/resources/conversations/items'
import {
  type ClientGateway,
  expectRecall,
  kinds,
  startClientGateway,
} from '#test/support/client-gateway.ts'

/** Conversations in the `openai` package. */

describe.each(kinds)('conversations over a $kind upstream', ({ kind, model, tools }) => {
  let server: ClientGateway
  let client: OpenAI

  beforeAll(async () => {
    server = await startClientGateway(kind)
    client = await server.gateway.openai()
  })
  afterAll(() => server.stop())

  const textsOf = async (id: string) => {
    const texts: string[] = []
    for await (const item of client.conversations.items.list(id, { order: 'asc', limit: 2 })) {
      texts.push(textOf(item))
    }
    return texts
  }

  test('are created, updated and deleted', async () => {
    const created = await client.conversations.create({ metadata: { about: 'the sea' } })
    expect(created.object).toBe('conversation')
    expect(await client.conversations.retrieve(created.id)).toEqual(created)
    const changed = await client.conversations.update(created.id, { metadata: { about: 'wind' } })
    expect(changed.metadata).toEqual({ about: 'wind' })
    expect(await client.conversations.delete(created.id)).toMatchObject({
      id: created.id,
      deleted: true,
    })
    const failure = await client.conversations.retrieve(created.id).catch((error) => error)
    expect(failure.status).toBe(404)
  })

  test('contain items that can be added, retrieved and deleted', async () => {
    const { id } = await client.conversations.create({
      items: [{ type: 'message', role: 'user', content: 'one' }],
    })
    const added = await client.conversations.items.create(id, {
      items: [
        { type: 'message', role: 'user', content: 'two' },
        { type: 'message', role: 'user', content: 'three' },
      ],
    })
    expect(added.data.map(textOf)).toEqual(['two', 'three'])
    expect(await textsOf(id)).toEqual(['one', 'two', 'three'])
    const second = String(added.data[0]?.id)
    const place = { conversation_id: id }
    expect(textOf(await client.conversations.items.retrieve(second, place))).toBe('two')
    await client.conversations.items.delete(second, place)
    expect(await textsOf(id)).toEqual(['one', 'three'])
  })

  test('are the context of a response, and store its output', async () => {
    const { id } = await client.conversations.create()
    const introduction = 'My name is Ada and I like the sea and the wind.'
    const first = await client.responses.create({ model, input: introduction, conversation: id })
    expect(first.conversation).toEqual({ id })
    const second = await client.responses
      .stream({ model, input: 'recall it', conversation: { id } })
      .finalResponse()
    const { output_text: text, usage } = second
    expectRecall(kind, { text, inputTokens: usage?.input_tokens }, [
      introduction,
      first.output_text,
    ])
    expect(await textsOf(id)).toEqual([
      introduction,
      first.output_text,
      'recall it',
      second.output_text,
    ])
  })

  test('store a tool call and its result', async () => {
    const { id } = await client.conversations.create()
    const tool = {
      type: 'function' as const,
      name: 'get_weather',
      strict: false,
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    }
    const first = await client.responses.create({
      model: tools,
      input: 'Weather in Oslo?',
      conversation: id,
      tools: [tool],
    })
    const [call] = first.output.filter((item) => item.type === 'function_call')
    const second = await client.responses.create({
      model: tools,
      conversation: id,
      tools: [tool],
      input: [
        { type: 'function_call_output', call_id: String(call?.call_id), output: 'sunny today' },
      ],
    })
    expect(second.output_text).toContain('sunny today')
    const types: string[] = []
    for await (const { type } of client.conversations.items.list(id, { order: 'asc' })) {
      types.push(type)
    }
    expect(types).toEqual(['message', 'function_call', 'function_call_output', 'message'])
  })
})

function textOf(item: ConversationItem): string {
  if (item.type !== 'message') return item.type
  return item.content.map((part) => ('text' in part ? part.text : '')).join('')
}
