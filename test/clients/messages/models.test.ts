import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { ann, makeAgent } from '#test/agents/world.ts'
import { type MessageClients, sdks, startMessageClients } from '#test/support/message-clients.ts'

/** The models and agents that the `@anthropic-ai/sdk` package lists and calls. */

let world: MessageClients
let agent: string
let hidden: string
beforeAll(async () => {
  const house = { upstreams: ['upstream-1'], upstreamModel: 'chat', contextWindow: 1_000_000 }
  world = await startMessageClients({
    model: [{ ...house, name: 'org/house', capabilities: ['vision', 'tools', 'reasoning'] }],
  })
  agent = await makeAgent(world.gateway, ann, { ...pirate, visibility: { kind: 'everyone' } })
  hidden = await makeAgent(world.gateway, ann, pirate)
})
afterAll(() => world.stop())

const pirate = { name: 'Pirate', model: 'org/house', instructions: 'Speak like a pirate.' }
const hello = { max_tokens: 100, messages: [{ role: 'user' as const, content: 'Say hello.' }] }

describe.each(sdks)('the package $sdk', ({ Sdk }) => {
  let client: Anthropic
  beforeAll(() => {
    client = world.client(Sdk)
  })

  test('pages through the models forwards and backwards', async () => {
    const all = (await client.models.list({ limit: 1000 })).data.map(({ id }) => id)
    expect(all).toContain('vendor-model-chat')
    expect(all).toContain(`vendor-agent-${agent}`)
    expect(all).not.toContain(`vendor-agent-${hidden}`)
    const paged: string[] = []
    for await (const { id } of client.models.list({ limit: 2 })) paged.push(id)
    expect(paged).toEqual(all)
    const page = await client.models.list({ limit: 2 })
    expect([page.data.length, page.has_more]).toEqual([2, true])
    const next = await page.getNextPage()
    expect(next.data.map(({ id }) => id)).toEqual(all.slice(2, 4))
    const back: string[] = []
    for await (const { id } of client.models.list({ limit: 2, before_id: all[5] ?? '' }))
      back.push(id)
    expect(back.toSorted()).toEqual(all.slice(0, 5).toSorted())
  })

  test('retrieves a model by any of its names', async () => {
    const listed = (await client.models.list({ limit: 1000 })).data
    for (const { id } of listed) expect((await client.models.retrieve(id)).id).toBe(id)
    const house = await client.models.retrieve('org/house')
    expect(house).toMatchObject({
      id: 'vendor-model-org/house',
      type: 'model',
      display_name: 'org/house',
      max_input_tokens: 1_000_000,
    })
    expect(house.capabilities?.image_input.supported).toBe(true)
    expect(Date.parse(house.created_at)).not.toBeNaN()
    expect((await client.models.retrieve(`vendor-agent-${agent}`)).display_name).toBe('Pirate')
    const foreign = await client.models.retrieve(`vendor-agent-${hidden}`).catch((error) => error)
    expect(foreign).toBeInstanceOf(Sdk.NotFoundError)
  })

  test('calls every model and agent of the list', async () => {
    const names = [
      'org/house',
      'vendor-model-org/house',
      'vendor-model-org/house[1m]',
      `vendor-agent-${agent}`,
    ]
    for (const model of names) {
      const message = await client.messages.create({ model, ...hello })
      expect([message.model, message.stop_reason]).toEqual([model, 'end_turn'])
      expect(world.asked()['model']).toBe('chat')
      const { messages } = hello
      expect((await client.messages.countTokens({ model, messages })).input_tokens).toBePositive()
    }
  })

  test('calls an agent like a model', async () => {
    const model = `vendor-agent-${agent}`
    const { system, ...params } = { ...hello, system: 'Be brief.' }
    const message = await client.messages.stream({ model, system, ...params }).finalMessage()
    expect(message.model).toBe(model)
    expect(JSON.stringify(world.asked())).toContain('Speak like a pirate.\\n\\nBe brief.')
    const plain = await client.messages.countTokens({
      model: 'org/house',
      messages: params.messages,
    })
    const counted = await client.messages.countTokens({ model, messages: params.messages })
    expect(counted.input_tokens).toBeGreaterThan(plain.input_tokens)
  })

  test('cannot distinguish a hidden agent from an unknown one', async () => {
    const errorOf = async (model: string) => {
      const failure = await client.messages.create({ model, ...hello }).catch((error) => error)
      expect(failure).toBeInstanceOf(Sdk.NotFoundError)
      expect(failure.error.error.message).toBe(`model: ${model}`)
      return Object.keys(failure.error.error)
    }
    const never = 'vendor-agent-00000000-0000-4000-8000-000000000000'
    expect(await errorOf(`vendor-agent-${hidden}`)).toEqual(await errorOf(never))
  })
})
