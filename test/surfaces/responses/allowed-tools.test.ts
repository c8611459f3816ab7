import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'

/** Upstreams that call a tool that is not allowed. */

const find = { type: 'function', name: 'find', parameters: { type: 'object', properties: {} } }
const tools = [
  { type: 'namespace', name: 'files', description: 'The files of the user.', tools: [find] },
  { type: 'namespace', name: 'people', description: 'Who is who.', tools: [find] },
]
const onlyPeople = {
  type: 'allowed_tools',
  mode: 'auto',
  tools: [{ type: 'function', name: 'find', namespace: 'people' }],
}

/** Sends `Hm.` first if requested, then calls `find` in the requested namespace. */
const answers = {
  chat: (namespace: string, speaks: boolean) =>
    chatStream([
      ...(speaks ? [chunk({ content: 'Hm.' })] : []),
      chunk({
        tool_calls: [
          { index: 0, id: 'a', function: { name: `${namespace}__find`, arguments: '{}' } },
        ],
      }),
      chunk({}, 'tool_calls'),
    ]),
  responses: (namespace: string, speaks: boolean) => {
    const call = { type: 'function_call', id: 'f', call_id: 'a', name: 'find', namespace }
    const content = [{ type: 'output_text', text: 'Hm.', annotations: [] }]
    const textMessage = { type: 'message', id: 'm', role: 'assistant', content }
    const output = [...(speaks ? [textMessage] : []), { ...call, arguments: '{}' }]
    const events = [
      ...output.map((item, output_index) => ({
        type: 'response.output_item.done',
        output_index,
        item,
      })),
      { type: 'response.completed', response: { status: 'completed', output } },
    ]
    return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  },
}

describe.each(['chat', 'responses'] as const)('over a %s upstream', (api) => {
  let upstream: ReplayUpstream
  let gateway: Gateway

  beforeAll(async () => {
    upstream = await startReplayUpstream({})
    gateway = await startGateway({
      upstream: [{ url: upstream.baseUrl, api, models: ['m'] }],
      retry: { retriesMax: 0 },
    })
  })
  afterAll(async () => {
    await gateway.stop()
    await upstream.stop()
  })

  const ask = (fields: object) =>
    gateway.post('/v1/responses', { model: 'm', input: 'x', ...fields })
  const answerWith = (namespace: string, speaks = false) =>
    upstream.answer({ body: answers[api](namespace, speaks) })

  test('a call of an allowed tool arrives with its namespace', async () => {
    answerWith('people')
    const response = await ask({ tools, tool_choice: onlyPeople })
    expect(await response.json()).toMatchObject({
      status: 'completed',
      tool_choice: onlyPeople,
      output: [{ type: 'function_call', name: 'find', namespace: 'people' }],
    })
  })

  test.each([
    ['of a tool with the same name in another namespace', onlyPeople],
    ['of any tool if no call is allowed', 'none'],
  ])('a call %s is a bad gateway', async (_, tool_choice) => {
    answerWith('files')
    for (const stream of [false, true]) {
      const response = await ask({ tools, tool_choice, stream })
      expect(response.status).toBe(502)
      expect(await response.json()).toMatchObject({ error: { code: 'upstream_invalid_answer' } })
    }
  })

  test('after the first output the stream reports it and ends', async () => {
    answerWith('files', true)
    const response = await ask({ tools, tool_choice: onlyPeople, stream: true })
    const wire = await response.text()
    expect(wire).toContain('"delta":"Hm."')
    expect(wire).toContain('event: response.failed')
    expect(wire).toContain('upstream_invalid_answer')
    expect(wire).not.toContain('function_call')
  })

  test('namespace descriptions reach the model', async () => {
    answerWith('people')
    await ask({ tools })
    const sent = upstream.requests.at(-1)?.body ?? ''
    expect(sent).toContain('The files of the user.')
    expect(sent).toContain('Who is who.')
  })
})
