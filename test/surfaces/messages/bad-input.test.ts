import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import zlib from 'node:zlib'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'
import { assistant, text, toolResult, toolUse, user } from './parsing.ts'

/** Invalid requests over HTTP. */

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const hello = { model: 'demo-fast', max_tokens: 50, messages: [user('Hi.')] }
const path = '/compat/v1/messages'
const image = (source: object) => user({ type: 'image', source })
const base64 = (mediaType: string, data: string) => ({
  type: 'base64',
  media_type: mediaType,
  data,
})

const refusals: [what: string, fields: object, place: string][] = [
  ['no messages', { messages: [] }, 'messages:'],
  ['no max_tokens', { max_tokens: undefined }, 'max_tokens: is required'],
  ['a negative max_tokens', { max_tokens: -5 }, 'max_tokens:'],
  [
    'a result without its call',
    { messages: [user('Hi.'), user(toolResult('toolu_1'))] },
    'messages.1.content.0.tool_use_id:',
  ],
  [
    'duplicated call ids',
    { messages: [user('Hi.'), assistant(toolUse('a'), toolUse('a'))] },
    'messages.1.content.1.id:',
  ],
  [
    'tools with the same name',
    { tools: [1, 2].map(() => ({ name: 'look', input_schema: { type: 'object' } })) },
    'tools.1.name:',
  ],
  [
    'an unknown block',
    { messages: [user({ type: 'video' })] },
    'messages.0.content.0.type: is "video"',
  ],
  [
    'an unsupported image type',
    { messages: [image(base64('image/tiff', 'AAAA'))] },
    'messages.0.content.0.source.media_type:',
  ],
  [
    'an image that is too large',
    { messages: [image(base64('image/png', 'A'.repeat(14_000_000)))] },
    'messages.0.content.0.source.data: image exceeds the maximum',
  ],
  [
    'an image at a private address',
    { messages: [image({ type: 'url', url: 'http://169.254.169.254/latest' })] },
    'messages.0.content.0.source.url:',
  ],
  [
    'a role of another protocol',
    { messages: [{ role: 'tool', content: 'x' }] },
    'messages.0.role:',
  ],
]

describe('invalid input is refused with its path:', () => {
  test.each(refusals)('%s', async (_, fields, place) => {
    for (const stream of [false, true]) {
      const httpResponse = await gateway.post(path, { ...hello, ...fields, stream })
      const { status, type, message } = await readFailure(httpResponse, gateway)
      expect([status, type]).toEqual([400, 'invalid_request_error'])
      expect(message).toStartWith(place)
    }
  })

  test.each([
    ['nothing', ''],
    ['invalid JSON', '{"model":'],
    ['a list', '[]'],
    ['a string', '"Hi."'],
    ['brackets', '['.repeat(50_000)],
  ])('a body of %s', async (_, body) => {
    const failure = await readFailure(await gateway.post(path, body), gateway)
    expect([failure.status, failure.type]).toEqual([400, 'invalid_request_error'])
  })

  test('a body of more than 32 MiB', async () => {
    const body = `{"model":"${'x'.repeat(33_554_432)}"}`
    const failure = await readFailure(await gateway.post(path, body), gateway)
    expect([failure.status, failure.type]).toEqual([413, 'request_too_large'])
  })

  test('a decompression bomb', async () => {
    const failure = await readFailure(
      await gateway.request(path, {
        method: 'POST',
        headers: { 'content-encoding': 'gzip' },
        body: new Uint8Array(zlib.gzipSync(new Uint8Array(40_000_000))),
      }),
      gateway,
    )
    expect([failure.status, failure.type]).toEqual([413, 'request_too_large'])
  })
})

describe('accepted input:', () => {
  const accepted: [what: string, fields: object][] = [
    [
      'a conversation that begins with the assistant',
      { messages: [assistant('Hello.'), user('Hi.')] },
    ],
    [
      'consecutive messages of one role',
      { messages: [user('Hi.'), user('There.'), assistant('a'), assistant('b'), user('c')] },
    ],
    ['empty texts', { messages: [user(text(''), text('Hi.')), assistant(text('')), user('c')] }],
    ['unknown fields', { something_new: { a: [1] }, context_management: { edits: [] } }],
  ]

  test.each(accepted)('%s', async (_, fields) => {
    const httpResponse = await gateway.post(path, { ...hello, ...fields })
    expect(await httpResponse.json()).toMatchObject({ type: 'message', stop_reason: 'end_turn' })
  })

  test('a gzip body and an unknown beta', async () => {
    const httpResponse = await gateway.request(path, {
      method: 'POST',
      headers: { 'content-encoding': 'gzip', 'anthropic-beta': 'nobody-knows-2031-01-01' },
      body: new Uint8Array(zlib.gzipSync(JSON.stringify(hello))),
    })
    expect(await httpResponse.json()).toMatchObject({ type: 'message', stop_reason: 'end_turn' })
  })
})
