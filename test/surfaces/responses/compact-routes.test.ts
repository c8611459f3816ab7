import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { faultsOfCompaction, openResponsesExists } from '#test/support/open-responses.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { checkStream } from '#test/support/response-frames.ts'
import { chatAnswer, chunk } from '#test/support/scripted-answers.ts'

/** Compactions with a running gateway: requested, at a threshold, and replayed as input. */

const summary = chatStream([chunk({ content: 'They like tea.' }), chunk({}, 'stop')])

let upstream: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  upstream = await startReplayUpstream(({ body }) => ({
    body: body.includes('You condense conversations') ? summary : chatAnswer(body),
  }))
  gateway = await startGateway({
    upstream: [
      { url: upstream.baseUrl, models: ['chat'] },
      { api: 'demo', models: ['demo-fast'] },
    ],
  })
})

afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

type Item = JsonObject & { type: string; id: string }
type Answer = JsonObject & { output: Item[] }

const call = async (path: string, body: object) => {
  const response = await gateway.post(path, body)
  const answer = (await response.json()) as Answer
  return { status: response.status, answer }
}
const create = (body: object) => call('/v1/responses', { store: false, ...body })
const compact = (body: object) => call('/v1/responses/compact', body)
const lastMessages = () => JSON.parse(upstream.requests.at(-1)?.body ?? '{}').messages

const conversation = [
  { role: 'user', content: 'I like tea.' },
  { role: 'assistant', content: 'Noted, in so many words.' },
  { role: 'user', content: 'What else is there?' },
  { role: 'assistant', content: 'Coffee.' },
]
const next = { role: 'user', content: 'What do I like?' }

describe.each(['chat', 'demo-fast'])('POST /v1/responses/compact with %s', (model) => {
  test('returns a context that begins a new chain', async () => {
    const { status, answer } = await compact({ model, input: conversation })
    expect(status).toBe(200)
    if (openResponsesExists) expect(faultsOfCompaction(answer)).toEqual([])
    expect(answer).toMatchObject({
      id: expect.stringMatching(/^resp_/),
      object: 'response.compaction',
      output: [
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'I like tea.' }] },
        { type: 'message', role: 'user' },
        { type: 'compaction', id: expect.stringMatching(/^cmp_/) },
      ],
      usage: { total_tokens: expect.any(Number) },
    })
    const again = await compact({ model, input: [...answer.output, next] })
    expect(again.answer.output.map(({ type }) => type)).toEqual([
      'message',
      'message',
      'message',
      'compaction',
    ])
    const followed = await create({ model, input: [...again.answer.output, next] })
    expect(followed).toMatchObject({ status: 200, answer: { status: 'completed' } })
  })
})

describe('a request after a compaction', () => {
  test('gets the summary, without the items that it replaces', async () => {
    const { answer } = await compact({ model: 'chat', input: conversation })
    expect(JSON.stringify(answer)).not.toContain('They like tea.')
    await create({ model: 'chat', input: [...answer.output, next] })
    const messages = lastMessages()
    expect(messages.map(({ role }: { role: string }) => role)).toEqual([
      'system',
      'user',
      'user',
      'user',
    ])
    expect(messages[0].content).toContain('They like tea.')
    expect(messages.at(-1).content).toBe('What do I like?')
    expect(JSON.stringify(messages)).not.toContain('so many words')
  })

  test('works with the package of OpenAI, in both calls', async () => {
    const client = await gateway.openai()
    const compacted = await client.responses.compact({ model: 'demo-fast', input: 'I like tea.' })
    const { output_text } = await client.responses.create({
      model: 'demo-fast',
      input: [...(compacted.output as never[]), { role: 'user', content: 'And now?' }],
      store: false,
    })
    expect(output_text).toContain('You said: And now?')
  })
})

describe('a compaction of the context', () => {
  const input = [...conversation, next]
  const context_management = [{ type: 'compaction', compact_threshold: 20 }]

  test('precedes the output, and later requests omit the items that it replaces', async () => {
    const body = { model: 'chat', input, context_management, store: false, stream: true }
    const { frames, response } = checkStream(
      await (await gateway.post('/v1/responses', body)).text(),
    )
    const output = response['output'] as Item[]
    expect(output.map(({ type }) => type)).toEqual(['compaction', 'message'])
    expect(output[0]).toEqual({
      id: expect.stringMatching(/^cmp_/),
      type: 'compaction',
      encrypted_content: expect.any(String),
    })
    expect(frames.slice(2, 4)).toMatchObject([
      { type: 'response.output_item.added', item: { type: 'compaction' } },
      { type: 'response.output_item.done', item: { type: 'compaction' } },
    ])
    expect(lastMessages()[0].content).toContain('They like tea.')

    await create({ model: 'chat', input: [...input, ...output, { role: 'user', content: 'So?' }] })
    const messages = lastMessages()
    expect(messages[0].content).toContain('They like tea.')
    expect(messages.slice(-2)).toEqual([
      { role: 'assistant', content: 'Hello wörld' },
      { role: 'user', content: 'So?' },
    ])
    expect(JSON.stringify(messages)).not.toContain('so many words')
  })

  test('is streamed as the package of OpenAI expects', async () => {
    const client = await gateway.openai()
    const stream = client.responses.stream({
      model: 'demo-fast',
      input: input as never[],
      context_management,
      store: false,
    })
    const { output, output_text } = await stream.finalResponse()
    expect(output.map(({ type }) => type)).toEqual(['compaction', 'message'])
    expect(output_text).toContain('You said: What do I like?')
  })

  test('is the only output if the input ends with a trigger', async () => {
    const { answer } = await create({
      model: 'demo-fast',
      input: [...input, { type: 'compaction_trigger' }],
    })
    expect(answer).toMatchObject({ status: 'completed', output: [{ type: 'compaction' }] })
    expect(answer.output).toHaveLength(1)
  })

  test('is stored with its response, and applies to the responses after it', async () => {
    const body = { model: 'chat', input, context_management }
    const { answer } = await create({ ...body, store: true })
    await create({ model: 'chat', input: 'So?', previous_response_id: answer['id'] })
    expect(lastMessages()[0].content).toContain('They like tea.')
    expect(JSON.stringify(lastMessages())).not.toContain('so many words')
  })
})

describe('a refused compaction', () => {
  test('has no model, or nothing to compact', async () => {
    const missing = await compact({ input: 'x' })
    expect(missing).toMatchObject({ status: 400, answer: { error: { param: 'model' } } })
    const empty = await compact({ model: 'chat' })
    expect(empty).toMatchObject({ status: 400, answer: { error: { param: 'input' } } })
    const unknown = await compact({ model: 'nobody', input: 'x' })
    expect(unknown).toMatchObject({ status: 404, answer: { error: { code: 'model_not_found' } } })
  })

  test('was altered, on either route', async () => {
    const { answer } = await compact({ model: 'demo-fast', input: 'I like tea.' })
    const sealed = String(answer.output.at(-1)?.['encrypted_content'])
    const altered = { type: 'compaction', encrypted_content: `${sealed.slice(0, -4)}AAAA` }
    for (const send of [compact, create]) {
      expect(await send({ model: 'demo-fast', input: [altered, next] })).toMatchObject({
        status: 400,
        answer: {
          error: { code: 'invalid_encrypted_content', param: 'input[0].encrypted_content' },
        },
      })
    }
  })
})
