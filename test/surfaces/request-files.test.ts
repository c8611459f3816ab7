import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { makeDocx, makePdf, makePptx, makeXlsx } from '#test/support/documents.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { pngOf } from '#test/support/sample-images.ts'
import { chatAnswer, nativeAnswer } from '#test/support/scripted-answers.ts'
import { messagesAnswer } from '#test/support/scripted-messages.ts'

/** Files in requests: content where the upstream takes files, otherwise their text. */

let upstream: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  upstream = await startReplayUpstream(({ path, body }) => {
    if (path.endsWith('/chat/completions')) return { body: chatAnswer(body) }
    if (path.endsWith('/responses')) return { body: nativeAnswer(body) }
    if (path.endsWith('/messages')) return messagesAnswer(body)
    return { status: 404, body: '{}', headers: { 'content-type': 'application/json' } }
  })
  const url = upstream.baseUrl
  gateway = await startGateway({
    // Texts do not depend on the programs of the machine.
    retrieval: { ocrPagesMax: 0 },
    upstream: [
      { url, models: ['chat'] },
      { url, models: ['chat-files'], files: true },
      { url, api: 'responses', models: ['responses'] },
      { url, api: 'messages', models: ['messages'], files: true },
      { name: 'seeing', url, models: ['eyes'] },
    ],
    model: [
      { name: 'vision', upstreams: ['seeing'], upstreamModel: 'eyes', capabilities: ['vision'] },
    ],
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const line = 'The tide at Brest turns at noon.'
const sheet = makeXlsx({
  Tides: [
    ['Port', 'Time'],
    [line, 'noon'],
  ],
})
const documents: [name: string, mimeType: string, bytes: Uint8Array][] = [
  ['tides.pdf', 'application/pdf', makePdf([[line]])],
  [
    'tides.docx',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    makeDocx([line]),
  ],
  ['tides.xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', sheet],
  [
    'tides.pptx',
    'application/vnd.openxmlformats-officedocument.presentationml.presentation',
    makePptx([{ lines: [line] }]),
  ],
  ['tides.html', 'text/html', Buffer.from(`<html><body><p>${line}</p></body></html>`)],
  ['tides.txt', 'text/plain', Buffer.from(line)],
]
const base64Of = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const pdf = makePdf([[line]])
const sent = (): JsonObject => JSON.parse(upstream.requests.at(-1)?.body ?? '{}')

async function upload(name: string, bytes: Uint8Array, subject?: string): Promise<string> {
  const form = new FormData()
  form.set('file', new File([new Uint8Array(bytes)], name))
  const headers = { authorization: `Bearer ${await gateway.token(['users'], subject)}` }
  const answer = await gateway.request('/v1/files', { method: 'POST', body: form, headers })
  return String(asRecord(await answer.json())['id'])
}

const respond = (model: string, content: unknown, more: object = {}) =>
  gateway.post('/v1/responses', { model, input: [{ role: 'user', content }], ...more })
const say = (model: string, content: unknown) =>
  gateway.post('/compat/v1/messages', {
    model,
    max_tokens: 100,
    messages: [{ role: 'user', content }],
  })

describe.each(documents)('%s', (name, mimeType, bytes) => {
  const expectText = () => expect(JSON.stringify(sent()['messages'])).toContain(line)
  const data = base64Of(bytes)

  test('as input_file by data is text for a chat model', async () => {
    const file = {
      type: 'input_file',
      filename: name,
      file_data: `data:${mimeType};base64,${data}`,
    }
    expect((await respond('chat', [file])).status).toBe(200)
    expectText()
    expect(JSON.stringify(sent()['messages'])).toContain(`Document: ${name}`)
    const output = { type: 'function_call_output', call_id: 'a', output: [file] }
    const call = { type: 'function_call', call_id: 'a', name: 'read', arguments: '{}' }
    const input = [{ role: 'user', content: 'Read.' }, call, output]
    const httpResponse = await gateway.post('/v1/responses', { model: 'chat', input })
    expect(httpResponse.status).toBe(200)
    expectText()
  })

  test('as input_file by id is text for a chat model, and data for a native one', async () => {
    const file = { type: 'input_file', file_id: await upload(`by-id-${name}`, bytes) }
    const stored = await respond('chat', [file])
    expect(stored.status).toBe(200)
    expectText()
    const previous = { previous_response_id: asRecord(await stored.json())['id'] }
    expect((await respond('chat', 'Again.', previous)).status).toBe(200)
    expectText()
    expect((await respond('responses', [file])).status).toBe(200)
    expect(JSON.stringify(sent()['input'])).toContain(data)
  })

  test('as a document of the Messages API is text for a chat model', async () => {
    const source = { type: 'base64', media_type: mimeType, data }
    const document = { type: 'document', title: name, source }
    expect((await say('chat', [document])).status).toBe(200)
    expectText()
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [document] }
    const messages = [
      { role: 'user', content: 'Read.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'x', input: {} }] },
      { role: 'user', content: [result] },
    ]
    const body = { model: 'chat', max_tokens: 100, messages }
    expect((await gateway.post('/compat/v1/messages', body)).status).toBe(200)
    expectText()
  })

  test('as a document by id is inlined for every upstream', async () => {
    const id = await upload(`document-${name}`, bytes)
    const document = { type: 'document', source: { type: 'file', file_id: id } }
    expect((await say('chat', [document])).status).toBe(200)
    expectText()
    expect((await say('messages', [document])).status).toBe(200)
    const body = JSON.stringify(sent()['messages'])
    expect(body).toContain(mimeType === 'application/pdf' ? data : line)
    expect(body).not.toContain(id)
  })
})

test('an upstream that takes files gets a PDF, and the text of other files', async () => {
  const file = (name: string, mimeType: string, bytes: Uint8Array) => ({
    type: 'input_file',
    filename: name,
    file_data: `data:${mimeType};base64,${base64Of(bytes)}`,
  })
  expect((await respond('chat-files', [file('a.pdf', 'application/pdf', pdf)])).status).toBe(200)
  expect(JSON.stringify(sent())).toContain(base64Of(pdf))
  expect((await respond('chat-files', [file('a.xlsx', 'x/y', sheet)])).status).toBe(200)
  expect(JSON.stringify(sent())).toContain(line)
})

test('token counts include the text', async () => {
  const long = makePdf([Array(40).fill(line)])
  const count = async (bytes: Uint8Array) => {
    const source = { type: 'base64', media_type: 'application/pdf', data: base64Of(bytes) }
    const messages = [{ role: 'user', content: [{ type: 'document', source }] }]
    const counted = await gateway.post('/compat/v1/messages/count_tokens', {
      model: 'chat',
      messages,
    })
    return Number(asRecord(await counted.json())['input_tokens'])
  }
  expect((await count(long)) - (await count(pdf))).toBeGreaterThan(39 * 7)
})

test('a file without text does not end the conversation: the model gets the reason', async () => {
  const locked = makePdf([[line]], { locked: true })
  for (const [bytes, why] of [
    [locked, 'protected by a password'],
    [makePdf([[line]], { picture: true }), 'has no text'],
    [Buffer.from('%PDF-1.7 broken'), 'damaged'],
  ] as const) {
    const source = { type: 'base64', media_type: 'application/pdf', data: base64Of(bytes) }
    const httpResponse = await say('chat', [{ type: 'document', title: 'Paper', source }])
    expect(httpResponse.status).toBe(200)
    const text = JSON.stringify(sent()['messages'])
    expect(text).toContain('[The file Paper.pdf could not be read: ')
    expect(text).toContain(why)
  }
})

describe('an image', () => {
  const png = pngOf(4, 4)

  test('by id is data for every model', async () => {
    const id = await upload('cat.png', png)
    const image = { type: 'input_image', file_id: id, detail: 'low' }
    for (const model of ['chat', 'responses']) {
      expect((await respond(model, [image])).status).toBe(200)
      expect(JSON.stringify(sent())).toContain(`data:image/png;base64,${base64Of(png)}`)
    }
    const block = { type: 'image', source: { type: 'file', file_id: id } }
    for (const model of ['chat', 'messages']) {
      expect((await say(model, [block])).status).toBe(200)
      expect(JSON.stringify(sent())).toContain(base64Of(png))
    }
  })

  test('as a file is an image where the model sees', async () => {
    const file = { type: 'input_file', file_data: `data:image/png;base64,${base64Of(png)}` }
    expect((await respond('vision', [file])).status).toBe(200)
    expect(JSON.stringify(sent())).toContain('image_url')
    expect((await respond('chat', [file])).status).toBe(200)
    expect(JSON.stringify(sent())).toContain('could not be read')
  })

  test('by the id of another file is refused', async () => {
    const image = { type: 'input_image', file_id: await upload('not-an-image.pdf', pdf) }
    const failure = await readFailure(await respond('chat', [image]), gateway)
    expect(failure).toMatchObject({ status: 400, param: 'input[0].content[0].file_id' })
  })
})

describe('a file id', () => {
  const content = (id: string) => [{ type: 'input_file', file_id: id }]
  const unknown = ['file-abc123', '018f0000-0000-7000-8000-000000000000']

  test.each(unknown)('%s that does not exist is not found', async (id) => {
    const failure = await readFailure(await respond('chat', content(id)), gateway)
    expect(failure).toMatchObject({ status: 404, param: 'input[0].content[0].file_id' })
  })

  test('of another user is not found', async () => {
    const id = await upload('secret.txt', Buffer.from(line), 'somebody-else')
    const requestCount = upstream.requests.length
    expect((await respond('chat', content(id))).status).toBe(404)
    const source = { type: 'file', file_id: id }
    for (const model of ['chat', 'messages']) {
      expect((await say(model, [{ type: 'document', source }])).status).toBe(404)
    }
    expect(upstream.requests).toHaveLength(requestCount)
  })

  test('of the vendor reaches its upstream alone', async () => {
    const document = { type: 'document', source: { type: 'file', file_id: 'file_011CNha8' } }
    expect((await say('messages', [document])).status).toBe(200)
    expect(JSON.stringify(sent())).toContain('file_011CNha8')
    expect((await say('chat', [document])).status).toBe(400)
  })
})
