import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { isRecord, type JsonObject } from '#lib/json.ts'
import {
  type MessageClients,
  sdkMatrix,
  sdks,
  startMessageClients,
} from '#test/support/message-clients.ts'
import { redactedThought, signatureOf } from '#test/support/strict-messages-upstream.ts'

/** Thinking in the `@anthropic-ai/sdk` package, received and replayed. */

let world: MessageClients
beforeAll(async () => {
  world = await startMessageClients()
})
afterAll(() => world.stop())

const prompt = { role: 'user' as const, content: 'think: is it so?' }
const again = { role: 'user' as const, content: 'recall it' }
const thinking = { type: 'enabled', budget_tokens: 1024 } as const

type Message = Pick<Anthropic.Message, 'content'>
const thoughtsOf = ({ content }: Message) => content.filter(({ type }) => type === 'thinking')
const textOf = ({ content }: Message) =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')

/** All blocks of the upstream request, with the fields of any protocol. */
function sentBlocks(body: JsonObject): JsonObject[] {
  const messages = Array.isArray(body['messages']) ? body['messages'] : []
  return messages.flatMap(({ content }) => (Array.isArray(content) ? content.filter(isRecord) : []))
}

describe.each(sdkMatrix.filter(({ kind }) => kind !== 'demo'))(
  'the package $sdk over a $kind upstream',
  (row) => {
    const { Sdk, kind, reasoning: model } = row
    let client: Anthropic
    beforeAll(() => {
      client = world.client(Sdk)
    })
    const base = { model, max_tokens: 4096, thinking }

    test.each([false, true])(
      'returns signed thinking before the text (stream: %p)',
      async (stream) => {
        const params = { ...base, messages: [prompt] }
        const message = stream
          ? await client.messages.stream(params).finalMessage()
          : await client.messages.create(params)
        expect(message.content.map(({ type }) => type)).toEqual(['thinking', 'text'])
        const [block] = thoughtsOf(message)
        expect(block).toMatchObject({ thinking: 'Hm, yes.' })
        expect(block?.type === 'thinking' && block.signature).toMatch(/./)
        // The signature of the upstream is sealed, because it must return to the same upstream.
        expect(JSON.stringify(message)).not.toContain(signatureOf('Hm, yes.'))
      },
    )

    test('streams thinking, and the signature last', async () => {
      const stream = client.messages.stream({ ...base, messages: [prompt] })
      const deltas: string[] = []
      const signatures: string[] = []
      stream.on('thinking', (piece) => deltas.push(piece))
      stream.on('signature', (signature) => signatures.push(signature))
      const [block] = thoughtsOf(await stream.finalMessage())
      expect(block).toMatchObject({ thinking: deltas.join(''), signature: signatures[0] })
      expect(signatures).toHaveLength(1)
    })

    test.each([false, true])('replays thinking in the second turn (stream: %p)', async (stream) => {
      const params = { ...base, messages: [prompt] }
      const first = stream
        ? await client.messages.stream(params).finalMessage()
        : await client.messages.create(params)
      const messages = [prompt, { role: 'assistant' as const, content: first.content }, again]
      const second = await client.messages.create({ ...base, messages })
      expect(second.stop_reason).toBe('end_turn')
      expect(textOf(second)).toContain('Hm, yes.')
      if (kind === 'messages') {
        const [block] = sentBlocks(world.asked())
        expect(block).toEqual({
          type: 'thinking',
          thinking: 'Hm, yes.',
          signature: signatureOf('Hm, yes.'),
        })
      }
      if (kind === 'chat') {
        const messages = Object(world.asked()['messages'])
        expect(messages[1]).toMatchObject({ content: 'Yes.', reasoning_content: 'Hm, yes.' })
      }
    })

    test('continues thinking between a call and its result', async () => {
      const tools = [{ name: 'get_weather', input_schema: { type: 'object' as const } }]
      const turn = (await client.messages.create({ ...base, messages: [prompt] })).content
      const call = { type: 'tool_use' as const, id: 'toolu_9', name: 'get_weather', input: {} }
      const result = { type: 'tool_result' as const, tool_use_id: 'toolu_9', content: 'rain' }
      const message = await client.messages.create({
        ...base,
        tools,
        messages: [
          prompt,
          { role: 'assistant', content: [...thoughtsOf({ content: turn }), call] },
          { role: 'user', content: [result] },
        ],
      })
      expect(textOf(message)).toContain('rain')
      expect(JSON.stringify(world.asked())).toContain('Hm, yes.')
    })

    test('omits thinking if requested, and still replays it', async () => {
      const hidden = { type: 'enabled', budget_tokens: 1024, display: 'omitted' } as const
      const first = await client.messages.create({ ...base, thinking: hidden, messages: [prompt] })
      if (kind === 'messages') {
        expect(world.asked()['thinking']).toEqual(hidden)
        return
      }
      const [block] = thoughtsOf(first)
      expect(block?.type === 'thinking' && block.thinking).toBe('')
      expect(block?.type === 'thinking' && block.signature).toMatch(/./)
      const turn = { role: 'assistant' as const, content: first.content }
      await client.messages.create({ ...base, messages: [prompt, turn, again] })
      expect(JSON.stringify(world.asked())).toContain('Hm, yes.')
    })

    test('accepts thinking that another service signed', async () => {
      const foreign = {
        type: 'thinking' as const,
        thinking: 'Elsewhere.',
        signature: 'Zm9yZWlnbg==',
      }
      const turn = {
        role: 'assistant' as const,
        content: [foreign, { type: 'text' as const, text: 'Yes.' }],
      }
      const request = client.messages.create({ ...base, messages: [prompt, turn, again] })
      if (kind === 'messages') {
        // The upstream itself rejects the signature, with a message that clients parse.
        const failure = await request.catch((error) => error)
        expect(failure).toBeInstanceOf(Sdk.BadRequestError)
        expect(failure.message).toContain('Invalid `signature` in `thinking` block')
      } else {
        expect((await request).stop_reason).toBe('end_turn')
        expect(JSON.stringify(world.asked())).not.toContain('Elsewhere.')
      }
    })
  },
)

describe.each(sdks)('the package $sdk', ({ Sdk }) => {
  const models = ['chat', 'responses', 'messages']
  const pairs = models.flatMap((from) => models.map((to) => ({ from, to })))

  test.each(pairs)('replays thinking of $from to $to', async ({ from, to }) => {
    const client = world.client(Sdk)
    const base = { max_tokens: 4096, thinking }
    const first = await client.messages.create({ ...base, model: from, messages: [prompt] })
    expect(thoughtsOf(first)).toHaveLength(1)
    const messages = [prompt, { role: 'assistant' as const, content: first.content }, again]
    const second = await client.messages.create({ ...base, model: to, messages })
    expect(second.stop_reason).toBe('end_turn')
    expect(textOf(second)).not.toBe('')
    // Only its maker gets the signed thinking.
    if (to === 'messages') {
      const blocks = sentBlocks(world.asked()).filter(({ type }) => type === 'thinking')
      expect(blocks).toHaveLength(from === to ? 1 : 0)
    }
  })

  test('returns the thinking of the demo, and replays it', async () => {
    const client = world.client(Sdk)
    const params = { model: 'demo-reasoning', max_tokens: 4096, thinking }
    const first = await client.messages.stream({ ...params, messages: [prompt] }).finalMessage()
    const [block] = thoughtsOf(first)
    expect(block?.type === 'thinking' && block.thinking).toContain('I will repeat what it says.')
    const count = async (content: Anthropic.ContentBlock[]) => {
      const messages = [prompt, { role: 'assistant' as const, content }, again]
      return (await client.messages.countTokens({ model: 'demo', messages })).input_tokens
    }
    expect(await count(first.content)).toBeGreaterThan(await count(first.content.slice(1)))
  })

  test('replays redacted thinking', async () => {
    const client = world.client(Sdk)
    const base = { max_tokens: 4096, model: 'messages', thinking }
    const secret = { role: 'user' as const, content: 'redacted' }
    for (const stream of [false, true]) {
      const params = { ...base, messages: [secret] }
      const first = stream
        ? await client.messages.stream(params).finalMessage()
        : await client.messages.create(params)
      expect(first.content.map(({ type }) => type)).toEqual(['redacted_thinking', 'text'])
      expect(JSON.stringify(first)).not.toContain(redactedThought)
      const turn = { role: 'assistant' as const, content: first.content }
      await client.messages.create({ ...base, messages: [secret, turn, again] })
      expect(sentBlocks(world.asked())[0]).toEqual({
        type: 'redacted_thinking',
        data: redactedThought,
      })
      const otherModel = { ...base, model: 'chat', messages: [secret, turn, again] }
      expect((await client.messages.create(otherModel)).stop_reason).toBe('end_turn')
    }
  })

  test('ignores thinking with an altered signature', async () => {
    const client = world.client(Sdk)
    const first = await client.messages.create({
      model: 'chat',
      max_tokens: 4096,
      thinking,
      messages: [prompt],
    })
    const [block, ...rest] = first.content
    if (block?.type !== 'thinking') throw new Error('no thoughts')
    const altered = { ...block, signature: `${block.signature.slice(0, -4)}AAAA` }
    for (const model of ['chat', 'responses', 'messages']) {
      const turn = { role: 'assistant' as const, content: [altered, ...rest] }
      const { stop_reason: reason } = await client.messages.create({
        model,
        max_tokens: 4096,
        thinking,
        messages: [prompt, turn, again],
      })
      expect(reason).toBe('end_turn')
      expect(JSON.stringify(world.asked())).not.toContain('Hm, yes.')
    }
  })

  test('requests thinking from each upstream in its own format', async () => {
    const client = world.client(Sdk)
    const ask = async (model: string, fields: object) => {
      await client.messages.create({ model, max_tokens: 4096, messages: [prompt], ...fields })
      return world.asked()
    }
    const much = {
      thinking: { type: 'enabled', budget_tokens: 20_000 },
      max_tokens: 21_000,
    }
    expect(await ask('chat', much)).toMatchObject({ reasoning_effort: 'medium' })
    expect(await ask('responses', much)).toMatchObject({ reasoning: { effort: 'medium' } })
    expect(await ask('messages', { thinking })).toMatchObject({ thinking })
    const adaptive = { thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } }
    expect(await ask('chat', adaptive)).toMatchObject({ reasoning_effort: 'high' })
    expect(await ask('messages', adaptive)).toMatchObject(adaptive)
    const off = { thinking: { type: 'disabled' } }
    expect(await ask('chat', off)).toMatchObject({ reasoning_effort: 'none' })
    expect(await ask('chat', {})).not.toHaveProperty('reasoning_effort')
  })
})
