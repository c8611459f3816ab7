import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { checkMessageStream } from '#test/support/message-frames.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Guarantees of the protocol that few upstreams implement: stop sequences and single calls. */

let upstream: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  upstream = await startReplayUpstream({})
  gateway = await startGateway({ upstream: [{ url: upstream.baseUrl, models: ['m'] }] })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const usage = { prompt_tokens: 7, completion_tokens: 30, total_tokens: 37 }
const messages = [{ role: 'user', content: 'Count.' }]
const ask = (given: object) =>
  gateway.post('/compat/v1/messages', { model: 'm', max_tokens: 100, messages, ...given })

describe('stop sequences', () => {
  const stopped = {
    content: [{ type: 'text', text: 'one, two, ' }],
    stop_reason: 'stop_sequence',
    stop_sequence: 'three',
    stop_details: null,
  }
  beforeEach(() => {
    const outputChunks = ['one, ', 'two, th', 'r', 'ee, four'].map((content) => chunk({ content }))
    upstream.answer({
      body: chatStream(outputChunks).replace('data: [DONE]\n\n', ''),
      ending: 'hang',
    })
  })

  test('end a stream and the upstream request at once', async () => {
    const { aborted } = upstream.connections
    const answer = await ask({ stream: true, stop_sequences: ['three', 'five'] })
    expect(checkMessageStream(await answer.text()).message).toMatchObject(stopped)
    await upstream.until(({ connections }) => connections.aborted > aborted)
  })

  test('end output without streaming, with estimated usage', async () => {
    const answer = await ask({ stop_sequences: ['three'] })
    const message = asRecord(await answer.json())
    expect(message).toMatchObject(stopped)
    const { input_tokens: input, output_tokens: output } = asRecord(message['usage'])
    expect(input).toBeGreaterThan(0)
    expect(output).toBeWithin(3, 10)
  })

  test('are not sent to an upstream that cannot report which one it matched', async () => {
    await (await ask({ stop_sequences: ['three'] })).json()
    expect(upstream.requests.at(-1)?.body).not.toContain('three')
  })

  test('that do not occur change nothing', async () => {
    const body = chatStream([chunk({ content: 'one, thre' }, 'stop'), { choices: [], usage }])
    upstream.answer({ body })
    const answer = await ask({ stop_sequences: ['three'] })
    expect(await answer.json()).toMatchObject({
      content: [{ text: 'one, thre' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 7, output_tokens: 30 },
    })
  })
})

describe('disable_parallel_tool_use', () => {
  const tools = [{ name: 'get', input_schema: { type: 'object', properties: {} } }]
  const call = (index: number) => ({
    tool_calls: [{ index, id: `call:${index}`, function: { name: 'get', arguments: '{"a":1}' } }],
  })
  beforeEach(() => {
    upstream.answer({ body: chatStream([chunk(call(0)), chunk(call(1)), chunk({}, 'tool_calls')]) })
  })

  test.each([true, false])('limits an upstream to one call if it is %p', async (disabled) => {
    const choice = { type: 'auto', disable_parallel_tool_use: disabled }
    for (const stream of [true, false]) {
      const answer = await ask({ tools, tool_choice: choice, stream })
      const message = stream ? checkMessageStream(await answer.text()).message : await answer.json()
      expect(message).toMatchObject({ stop_reason: 'tool_use' })
      const calls = contentOf(message)
      expect(calls).toHaveLength(disabled ? 1 : 2)
      expect(calls[0]).toMatchObject({ type: 'tool_use', input: { a: 1 } })
    }
  })

  test('and an escaped id returns to the upstream in its original form', async () => {
    const content = contentOf(await (await ask({ tools })).json())
    const results = content.map(({ id }) => {
      expect(id).toMatch(/^[A-Za-z0-9_-]+$/)
      return { type: 'tool_result', tool_use_id: id, content: 'x' }
    })
    upstream.answer({ body: chatStream([chunk({ content: 'So.' }, 'stop')]) })
    const next = [...messages, { role: 'assistant', content }, { role: 'user', content: results }]
    expect((await ask({ tools, messages: next })).status).toBe(200)
    const sent = asRecord(parseJson(upstream.requests.at(-1)?.body ?? ''))['messages']
    expect(sent).toMatchObject([
      { role: 'user' },
      { tool_calls: [{ id: 'call:0' }, { id: 'call:1' }] },
      { role: 'tool', tool_call_id: 'call:0' },
      { role: 'tool', tool_call_id: 'call:1' },
    ])
  })
})

function contentOf(message: unknown): JsonObject[] {
  const { content } = asRecord(message)
  return Array.isArray(content) ? content.map(asRecord) : []
}
