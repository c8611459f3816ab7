import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { stopUpstreams, upstreamThat } from '#test/support/generations.ts'
import { malformedUrls, privateUrls, publicUrls } from '#test/support/private-urls.ts'
import type { ReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'
import { openSocket } from '#test/support/socket-client.ts'
import {
  refusalOfMessages,
  toolResult,
  toolUse,
  assistant as turnOfAssistant,
  user as turnOfUser,
} from './messages/parsing.ts'
import { parse, refusalOf } from './responses/parsing.ts'

/** URLs that an upstream would fetch inside its own network, on both model surfaces. */

const call = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }
const customCall = { type: 'custom_tool_call', call_id: 'a', name: 'f', input: '' }
const image = (url: string) => ({ type: 'input_image', image_url: url })
const file = (url: string) => ({ type: 'input_file', file_url: url })
const text = { type: 'input_text', text: 'Look.' }
const message = (role: string, ...content: unknown[]) => ({ type: 'message', role, content })
const output = (...parts: unknown[]) => ({
  type: 'function_call_output',
  call_id: 'a',
  output: parts,
})

/** Every field of a Responses input that can hold a URL, with its path. */
const responsesFields: [path: string, input: (url: string) => unknown[]][] = [
  ['[0].content[0].image_url', (url) => [{ role: 'user', content: [image(url)] }]],
  ['[0].content[1].image_url', (url) => [message('user', text, image(url))]],
  ['[1].content[0].image_url', (url) => [message('user', text), message('system', image(url))]],
  ['[0].content[0].image_url', (url) => [message('developer', image(url)), message('user', text)]],
  ['[0].content[0].image_url', (url) => [message('assistant', image(url)), message('user', text)]],
  ['[0].content[1].file_url', (url) => [message('user', text, file(url))]],
  ['[0].content[0].file_url', (url) => [message('user', { ...file(url), file_data: 'data:,x' })]],
  ['[1].output[0].image_url', (url) => [call, output(image(url))]],
  ['[1].output[1].file_url', (url) => [call, output(text, file(url))]],
  [
    '[1].output[0].image_url',
    (url) => [customCall, { ...output(image(url)), type: 'custom_tool_call_output' }],
  ],
]
const rows = responsesFields.flatMap(([path, input]) =>
  privateUrls.map((url) => ({ path, url, input: input(url) })),
)

describe('a private URL in the input of a response', () => {
  test.each(rows)('$url is refused at $path', ({ path, input }) => {
    expect(refusalOf({ input })).toMatchObject({
      status: 400,
      wireCode: 'invalid_request',
      param: `input${path}`,
      message: `input${path} leads to an address that is not public.`,
    })
  })

  test.each(malformedUrls)('%j is not a URL', (url) => {
    expect(refusalOf({ input: [message('user', image(url))] })).toMatchObject({
      param: 'input[0].content[0].image_url',
      message: 'input[0].content[0].image_url must be an http, https or data URL.',
    })
  })

  test.each(['http://127.0.0.1/a.pdf', ' http://127.0.0.1/a.pdf', 'https://example.com/a.pdf'])(
    '%j is not file data',
    (url) => {
      const part = { type: 'input_file', file_data: url }
      expect(refusalOf({ input: [message('user', part)] })).toMatchObject({
        param: 'input[0].content[0].file_data',
      })
    },
  )

  test.each([...publicUrls, 'data:image/png;base64,AAAA', 'DATA:,127.0.0.1'])(
    '%s is accepted, unchanged',
    (url) => {
      const content = [image(url), file(url)]
      expect<unknown>(parse({ input: [message('user', ...content)] }).request.items).toEqual([
        {
          type: 'message',
          role: 'user',
          parts: [
            { type: 'image', url, detail: null },
            { type: 'file', data: null, url, filename: null },
          ],
        },
      ])
    },
  )
})

describe('a private URL in a message', () => {
  const source = (url: string) => ({ source: { type: 'url', url } })
  const imageBlock = (url: string) => ({ type: 'image', ...source(url) })
  const documentBlock = (url: string) => ({ type: 'document', ...source(url) })
  const nested = (url: string) => ({
    type: 'document',
    source: { type: 'content', content: [imageBlock(url)] },
  })

  test.each(privateUrls)('%s is refused in every block', (url) => {
    const end = 'source.url: leads to an address that is not public'
    const at = 'messages.0.content.0'
    expect(refusalOfMessages(turnOfUser(imageBlock(url)))).toBe(`${at}.${end}`)
    expect(refusalOfMessages(turnOfUser(documentBlock(url)))).toBe(`${at}.${end}`)
    expect(refusalOfMessages(turnOfUser(nested(url)))).toBe(`${at}.source.content.0.${end}`)
    const result = toolResult('a', { content: [imageBlock(url)] })
    expect(refusalOfMessages(turnOfAssistant(toolUse('a')), turnOfUser(result))).toBe(
      `messages.1.content.0.content.0.${end}`,
    )
  })

  test.each([...malformedUrls, 'data:image/png;base64,AA==', 'file:///etc/passwd'])(
    '%j is not a URL',
    (url) => {
      expect(refusalOfMessages(turnOfUser(imageBlock(url)))).toBe(
        'messages.0.content.0.source.url: must be a URL that begins with https:// or http://',
      )
    },
  )
})

describe('a gateway', () => {
  const url = 'http://[::ffff:169.254.169.254]/latest/meta-data'
  const input = [call, output(text, file(url))]
  const field = '[1].output[1].file_url'
  let upstream: ReplayUpstream
  let gateway: Gateway

  beforeAll(async () => {
    upstream = await upstreamThat({})
    upstream.answer(({ body }) => ({ body: chatAnswer(body) }))
    gateway = await startGateway({ upstream: [{ url: upstream.baseUrl, models: ['m'] }] })
  })
  afterAll(async () => {
    await gateway.stop()
    await stopUpstreams()
  })

  async function expectRefused(path: string, body: object, param: string): Promise<void> {
    const httpResponse = await gateway.post(path, body)
    expect({ status: httpResponse.status, body: await httpResponse.json() }).toEqual({
      status: 400,
      body: {
        error: {
          message: `${param} leads to an address that is not public.`,
          type: 'invalid_request_error',
          code: 'invalid_request',
          param,
        },
      },
    })
  }

  test.each([
    ['/v1/responses', {}],
    ['/v1/responses', { stream: true }],
    ['/v1/responses', { store: false }],
    ['/v1/responses', { background: true }],
    ['/v1/responses/compact', {}],
    ['/v1/responses/input_tokens', {}],
  ])('refuses it in %s with %j before anything is forwarded', async (path, more) => {
    await expectRefused(path, { model: 'm', input, ...more }, `input${field}`)
    expect(upstream.requests).toBeEmpty()
  })

  test('refuses it over a WebSocket, which stays open', async () => {
    const authorization = `Bearer ${await gateway.token()}`
    const client = await openSocket(gateway.port, { headers: { authorization } })
    client.send({ type: 'response.create', model: 'm', input, store: false })
    const [frame] = await client.read(1)
    expect(frame).toMatchObject({
      type: 'error',
      status: 400,
      error: { code: 'invalid_request', param: `input${field}` },
    })
    const { response } = await client.turn({ model: 'm', input: 'hi', store: false })
    expect(response).toMatchObject({ status: 'completed' })
    expect(upstream.requests.filter(({ body }) => body.includes('meta-data'))).toBeEmpty()
    client.socket.destroy()
  })

  test('refuses it in the items of a conversation', async () => {
    await expectRefused('/v1/conversations', { items: input }, `items${field}`)
    const created = await gateway.post('/v1/conversations', {})
    const { id } = Object(await created.json())
    await expectRefused(`/v1/conversations/${id}/items`, { items: input }, `items${field}`)
    const list = await gateway.request(`/v1/conversations/${id}/items`)
    expect(await list.json()).toMatchObject({ data: [] })
  })
})
