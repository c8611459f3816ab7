import { afterAll, beforeAll, expect, test } from 'bun:test'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chatAnswer } from '#test/support/scripted-answers.ts'

/** A PDF with a printed and a scanned page, in requests to models with and without vision. */

let upstream: ReplayUpstream
let gateway: Gateway
let scan: string
let fileId: string

beforeAll(async () => {
  upstream = await startReplayUpstream(({ body }) => ({ body: chatAnswer(body) }))
  const url = upstream.baseUrl
  gateway = await startGateway({
    // Texts do not depend on the programs of the machine.
    retrieval: { ocrPagesMax: 0 },
    upstream: [
      { url, models: ['chat'] },
      { name: 'seeing', url, models: ['eyes'] },
    ],
    model: [
      { name: 'vision', upstreams: ['seeing'], upstreamModel: 'eyes', capabilities: ['vision'] },
    ],
  })
  const bytes = await Bun.file('test/fixtures/documents/scan.pdf').bytes()
  scan = Buffer.from(bytes).toString('base64')
  const form = new FormData()
  form.set('file', new File([bytes], 'scan.pdf'))
  const headers = { authorization: `Bearer ${await gateway.token(['users'])}` }
  const answer = await gateway.request('/v1/files', { method: 'POST', body: form, headers })
  fileId = String(asRecord(await answer.json())['id'])
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const sent = (): JsonObject => JSON.parse(upstream.requests.at(-1)?.body ?? '{}')
const respond = (model: string, file: object) =>
  gateway.post('/v1/responses', { model, input: [{ role: 'user', content: [file] }] })
const messagesOf = (source: object) => [
  { role: 'user', content: [{ type: 'document', title: 'scan', source }] },
]
const say = (model: string, source: object) =>
  gateway.post('/compat/v1/messages', { model, max_tokens: 100, messages: messagesOf(source) })
const inline = () => ({ type: 'base64', media_type: 'application/pdf', data: scan })

const send: [name: string, ask: (model: string) => Promise<Response>][] = [
  [
    'input_file by data',
    (model) =>
      respond(model, {
        type: 'input_file',
        filename: 'scan.pdf',
        file_data: `data:application/pdf;base64,${scan}`,
      }),
  ],
  ['input_file by id', (model) => respond(model, { type: 'input_file', file_id: fileId })],
  ['document by data', (model) => say(model, inline())],
  ['document by id', (model) => say(model, { type: 'file', file_id: fileId })],
]

test.each(send)('as %s is text and a picture where the model sees', async (_, ask) => {
  expect((await ask('vision')).status).toBe(200)
  const messages = JSON.stringify(sent()['messages'])
  expect(messages).toContain('Printed page')
  expect(messages).toContain('1 page has no text (2).')
  expect(messages).toMatch(/Page 2 of scan\.pdf:.*data:image\/jpeg;base64,\/9j/)
  expect(messages.match(/image_url/g)?.length).toBeGreaterThan(0)
})

test.each(send)('as %s is text with a note where it does not', async (_, ask) => {
  expect((await ask('chat')).status).toBe(200)
  const messages = JSON.stringify(sent()['messages'])
  expect(messages).toContain('Printed page')
  expect(messages).toContain('1 page has no text (2).')
  expect(messages).not.toContain('image')
})

test('counts its picture as an image', async () => {
  const count = async (model: string) => {
    const messages = messagesOf(inline())
    const path = '/compat/v1/messages/count_tokens'
    const counted = await gateway.post(path, { model, messages })
    return Number(asRecord(await counted.json())['input_tokens'])
  }
  expect((await count('vision')) - (await count('chat'))).toBeGreaterThan(200)
})
