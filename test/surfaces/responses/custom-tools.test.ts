import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import type {
  CustomTool,
  Response,
  ResponseInput,
  ResponseInputItem,
} from 'openai/resources/responses/responses'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Freeform tools in the `openai` package: called, answered, and replayed with the history. */

const definition = 'start: "*** Begin" /.+/s "*** End"'
const patch: CustomTool = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Changes files.',
  format: { type: 'grammar', syntax: 'lark', definition },
}
/** Text that JSON must escape, so that double encoding would be visible. */
const input = '*** Begin\n+ say("hi") \\ 字\n*** End'

const answers = {
  chat: (body: string) => {
    const isAnswered = JSON.parse(body).messages.at(-1).role === 'tool'
    const wrapped = JSON.stringify({ input })
    const call = (text: string) => ({
      tool_calls: [{ index: 0, id: 'a', function: { name: 'apply_patch', arguments: text } }],
    })
    return isAnswered
      ? chatStream([chunk({ content: 'Done.' }), chunk({}, 'stop')])
      : chatStream([
          chunk(call(wrapped.slice(0, 9))),
          chunk(call(wrapped.slice(9))),
          chunk({}, 'tool_calls'),
        ])
  },
  responses: (body: string) => {
    const isAnswered = JSON.parse(body).input.at(-1).type === 'custom_tool_call_output'
    const content = [{ type: 'output_text', text: 'Done.', annotations: [] }]
    const call = { type: 'custom_tool_call', id: 'x', call_id: 'a', name: 'apply_patch' }
    const output = isAnswered ? [{ type: 'message', id: 'm', content }] : [{ ...call, input }]
    const end = { type: 'response.completed', response: { status: 'completed', output } }
    return `data: ${JSON.stringify(end)}\n\n`
  },
}

describe.each(['chat', 'responses'] as const)('over a %s upstream', (api) => {
  let upstream: ReplayUpstream
  let gateway: Gateway
  let client: OpenAI

  beforeAll(async () => {
    upstream = await startReplayUpstream(({ body }) => ({ body: answers[api](body) }))
    gateway = await startGateway({ upstream: [{ url: upstream.baseUrl, api, models: ['m'] }] })
    client = await gateway.openai()
  })
  afterAll(async () => {
    await gateway.stop()
    await upstream.stop()
  })

  const question = { role: 'user' as const, content: 'Say hi.' }
  const ask = (items: ResponseInput) => ({ model: 'm', input: items, tools: [patch] })
  const answerTo = ({ output }: Pick<Response, 'output'>): ResponseInput => [
    question,
    ...(output as ResponseInputItem[]),
    { type: 'custom_tool_call_output', call_id: 'a', output: 'Patched.' },
  ]
  const lastBody = () => JSON.parse(upstream.requests.at(-1)?.body ?? '')

  test('a call arrives as raw text, streamed and complete', async () => {
    const stream = client.responses.stream(ask([question]))
    let streamed = ''
    stream.on('response.custom_tool_call_input.delta', ({ delta }) => {
      streamed += delta
    })
    const folded = await stream.finalResponse()
    const whole = await client.responses.create(ask([question]))
    expect(streamed).toBe(input)
    for (const { output, status } of [folded, whole]) {
      expect(status).toBe('completed')
      expect<unknown>(output).toMatchObject([
        { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input },
      ])
    }
  })

  test('the call and its output are part of the next request', async () => {
    const first = await client.responses.create(ask([question]))
    const second = await client.responses.stream(ask(answerTo(first))).finalResponse()
    expect(second.output_text).toBe('Done.')
    if (api === 'chat') {
      expect(lastBody().messages.slice(1)).toEqual([
        expect.objectContaining({
          role: 'assistant',
          tool_calls: [
            {
              id: 'a',
              type: 'function',
              function: { name: 'apply_patch', arguments: JSON.stringify({ input }) },
            },
          ],
        }),
        { role: 'tool', tool_call_id: 'a', content: 'Patched.' },
      ])
    } else {
      expect(lastBody().input.slice(1)).toEqual([
        { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input },
        { type: 'custom_tool_call_output', call_id: 'a', output: 'Patched.' },
      ])
    }
  })

  test('the upstream gets the grammar', async () => {
    await client.responses.create(ask([question]))
    expect(lastBody().tools).toEqual([
      api === 'chat'
        ? expect.objectContaining({
            function: expect.objectContaining({
              name: 'apply_patch',
              description: `Changes files.\n\nThe input must match this lark grammar:\n${definition}`,
            }),
          })
        : patch,
    ])
  })
})

test('the demo calls a freeform tool, and responds with its result', async () => {
  const gateway = await startGateway()
  const client = await gateway.openai()
  const ask = { model: 'demo-tools', tools: [patch] }
  const first = await client.responses.stream({ ...ask, input: 'Say hi.' }).finalResponse()
  const [call] = first.output
  expect<unknown>(call).toMatchObject({ type: 'custom_tool_call', name: 'apply_patch' })
  const callId = call?.type === 'custom_tool_call' ? call.call_id : ''
  const output = { type: 'custom_tool_call_output', call_id: callId, output: 'Patched.' } as const
  const history = [...(first.output as ResponseInputItem[]), output]
  const second = await client.responses.stream({ ...ask, input: history }).finalResponse()
  expect(second.output_text).toContain('Patched.')
  await gateway.stop()
})
