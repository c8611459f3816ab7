import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import type { JsonObject } from '#lib/json.ts'
import {
  type MessageClients,
  sdkMatrix,
  sdks,
  startMessageClients,
} from '#test/support/message-clients.ts'

/** Images and documents sent by the `@anthropic-ai/sdk` package. */

let world: MessageClients
beforeAll(async () => {
  world = await startMessageClients()
})
afterAll(() => world.stop())

/** One pixel. */
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const pdf = Buffer.from('%PDF-1.4 a page').toString('base64')
const url = 'https://pictures.example.com/cat.png'

const image: Anthropic.ImageBlockParam = {
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: png },
}
const linked: Anthropic.ImageBlockParam = { type: 'image', source: { type: 'url', url } }
const paper: Anthropic.DocumentBlockParam = {
  type: 'document',
  title: 'Paper',
  source: { type: 'base64', media_type: 'application/pdf', data: pdf },
}
const note: Anthropic.DocumentBlockParam = {
  type: 'document',
  title: 'Note',
  context: 'From the fridge.',
  source: { type: 'text', media_type: 'text/plain', data: 'Buy milk.' },
}
const question = { type: 'text' as const, text: 'What is it?' }

type Content = Anthropic.ContentBlockParam[]

describe.each(sdkMatrix)('the package $sdk over a $kind upstream', ({ Sdk, kind, model }) => {
  let client: Anthropic
  beforeAll(() => {
    client = world.client(Sdk)
  })
  const ask = (content: Content) =>
    client.messages.create({ model, max_tokens: 100, messages: [{ role: 'user', content }] })

  test('sends an image as data or by URL', async () => {
    const { stop_reason: reason } = await ask([image, linked, question])
    expect(reason).toBe('end_turn')
    if (kind !== 'demo') expect<unknown>(sentParts(world.asked())).toEqual(imagesIn[kind])
  })

  test('sends a text document', async () => {
    const message = await ask([note, question])
    expect(message.stop_reason).toBe('end_turn')
    const sent = JSON.stringify(kind === 'demo' ? message.content : world.asked())
    for (const words of ['Note', 'From the fridge.', 'Buy milk.']) expect(sent).toContain(words)
  })

  test('sends a PDF if the upstream supports files, and its text if not', async () => {
    const message = await ask([paper, question])
    expect(message.stop_reason).toBe('end_turn')
    const sent = kind === 'demo' ? '' : JSON.stringify(sentParts(world.asked()))
    // The PDF of this test is damaged, so the model gets the reason.
    if (kind === 'chat') expect(sent).toContain('[The file Paper.pdf could not be read: ')
    else if (kind !== 'demo') expect(sent).toContain(pdf)
    if (kind === 'messages') expect<unknown>(sentParts(world.asked())[0]).toEqual(paper)
  })

  test('returns an image from a tool', async () => {
    const messages: Anthropic.MessageParam[] = [
      { role: 'user', content: 'Look.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'see', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [question, image] }],
      },
    ]
    const tools = [{ name: 'see', input_schema: { type: 'object' as const } }]
    const { content } = await client.messages.create({ model, max_tokens: 100, messages, tools })
    expect(content).not.toEqual([])
    if (kind !== 'demo') expect(JSON.stringify(world.asked())).toContain(png)
  })

  test('counts the tokens of an image by its size', async () => {
    const count = async (content: Content) => {
      const messages = [{ role: 'user' as const, content }]
      return (await client.messages.countTokens({ model, messages })).input_tokens
    }
    const words = await count([question])
    expect(await count([image, question])).toBeGreaterThan(words)
    expect(await count([linked, question])).toBeGreaterThan(words)
    expect(await count([paper, question])).toBeGreaterThan(words)
  })
})

const imagesIn: Record<'chat' | 'responses' | 'messages', unknown> = {
  chat: [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
    { type: 'image_url', image_url: { url } },
    question,
  ],
  responses: [
    { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'auto' },
    { type: 'input_image', image_url: url, detail: 'auto' },
    { type: 'input_text', text: 'What is it?' },
  ],
  messages: [image, linked, question],
}

/** The content of the last message in the last upstream request. */
function sentParts(body: JsonObject): JsonObject[] {
  return Object([body['messages'] ?? body['input']].flat().at(-1)).content
}

describe.each(sdks)('the package $sdk reports invalid content', ({ Sdk }) => {
  const source = (fields: object) => [{ type: 'image', source: fields }]
  const refused: [what: string, content: unknown, words: string][] = [
    [
      'invalid image data',
      source({ type: 'base64', media_type: 'image/tiff', data: png }),
      'image/jpeg',
    ],
    [
      'an image without its data',
      source({ type: 'base64', media_type: 'image/png', data: '' }),
      'data',
    ],
    [
      'an image that is a data URL',
      source({ type: 'base64', media_type: 'image/png', data: `data:image/png;base64,${png}` }),
      'base64',
    ],
    ['an image file of the vendor', source({ type: 'file', file_id: 'file_1' }), 'file'],
    ['a private address', source({ type: 'url', url: 'http://10.0.0.8/cat.png' }), 'not public'],
    ['a loopback address', source({ type: 'url', url: 'http://localhost/cat.png' }), 'not public'],
    [
      'a link-local address',
      source({ type: 'url', url: 'http://[::ffff:169.254.169.254]/x' }),
      'not public',
    ],
    ['a file URL', source({ type: 'url', url: 'file:///etc/passwd' }), 'https'],
    [
      'an image over the limit',
      source({ type: 'base64', media_type: 'image/png', data: 'A'.repeat(14_000_004) }),
      'exceeds the maximum',
    ],
  ]

  test.each(refused)('%s', async (_, content, words) => {
    const failure = await world
      .client(Sdk)
      .messages.create({
        // An upstream of the protocol itself may know more than the gateway.
        model: 'chat',
        max_tokens: 10,
        messages: [{ role: 'user', content: content as Content }],
      })
      .catch((error) => error)
    expect(failure).toBeInstanceOf(Sdk.BadRequestError)
    expect(failure.error.error.message).toStartWith('messages.0.content.0.source')
    expect(failure.message).toContain(words)
  })
})
