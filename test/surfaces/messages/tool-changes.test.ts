import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { messagesAnswer } from '#test/support/strict-messages-upstream.ts'

/** Tools that a conversation adds and removes, and requests that only fill the prompt cache. */

let native: ReplayUpstream
let chat: ReplayUpstream
let gateway: Gateway

beforeAll(async () => {
  native = await startReplayUpstream(({ body }) => messagesAnswer(body))
  chat = await startReplayUpstream({ body: chatStream([chunk({ content: 'Hi' }, 'stop')]) })
  gateway = await startGateway({
    upstream: [
      { api: 'messages', url: native.baseUrl, models: ['native', 'both'] },
      { url: chat.baseUrl, models: ['chat', 'both'] },
    ],
  })
})
afterAll(async () => {
  await gateway.stop()
  await native.stop()
  await chat.stop()
})

const bodyOf = (upstream: ReplayUpstream) =>
  asRecord(parseJson(upstream.requests.at(-1)?.body ?? ''))
const ask = (given: object) =>
  gateway.post('/compat/v1/messages', {
    model: 'chat',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hi.' }],
    ...given,
  })

const tool = (name: string, more: object = {}) => ({
  name,
  description: `Does ${name}.`,
  input_schema: { type: 'object', properties: {} },
  ...more,
})
const reference = (name: string) => ({ type: 'tool_reference', name })
const add = (name: string) => ({ type: 'tool_addition', tool: reference(name) })
const define = (definition: object) => ({
  type: 'tool_addition',
  tool: { type: 'tool_definition', definition },
})
const remove = (name: string) => ({ type: 'tool_removal', tool: reference(name) })

/** A conversation with these system messages. */
const conversation = (...changes: JsonObject[][]) => [
  { role: 'user', content: 'Hi.' },
  ...changes.flatMap((content) => [
    { role: 'system', content },
    { role: 'user', content: 'Go on.' },
  ]),
]

type WireTool = { function: { name: string; description: string } }

/** The tools that a chat upstream gets, by name. */
async function toolsAfter(changes: JsonObject[][], tools: object[]): Promise<WireTool[]> {
  const response = await ask({ messages: conversation(...changes), tools })
  expect(response.status).toBe(200)
  const { tools: sent = [] } = bodyOf(chat)
  return sent as WireTool[]
}
const namesAfter = async (changes: JsonObject[][], tools: object[]) =>
  (await toolsAfter(changes, tools)).map((sent) => sent.function.name)

describe('on a translated upstream', () => {
  const tools = [tool('look'), tool('write'), tool('rare', { defer_loading: true })]

  test('a removed tool is not offered', async () => {
    expect(await namesAfter([], tools)).toEqual(['look', 'write'])
    expect(await namesAfter([[remove('write')]], tools)).toEqual(['look'])
    expect(await namesAfter([[remove('look'), remove('write')]], tools)).toEqual([])
  })

  test('the last change of a tool counts', async () => {
    expect(await namesAfter([[remove('write')], [add('write')]], tools)).toEqual(['look', 'write'])
    expect(await namesAfter([[remove('look'), add('look')], [remove('look')]], tools)).toEqual([
      'write',
    ])
  })

  test('a deferred tool is offered once it was added', async () => {
    expect(await namesAfter([[add('rare')]], tools)).toEqual(['look', 'write', 'rare'])
  })

  test('a tool that the conversation defines is offered, and replaces an earlier one', async () => {
    expect(await namesAfter([[define(tool('new'))]], tools)).toEqual(['look', 'write', 'new'])
    const renewed = define(tool('look', { description: 'Looks twice.' }))
    const [look] = await toolsAfter([[renewed]], tools)
    expect(look?.function).toMatchObject({ name: 'look', description: 'Looks twice.' })
    expect(await namesAfter([[define(tool('new'))], [remove('new')]], tools)).toEqual([
      'look',
      'write',
    ])
  })

  test('the changes of a compacted conversation count', async () => {
    const compaction = { type: 'compaction', content: 'So far.', tool_changes: [remove('look')] }
    const messages = [
      { role: 'assistant', content: [compaction] },
      { role: 'user', content: 'Go on.' },
    ]
    expect((await ask({ messages, tools })).status).toBe(200)
    expect(JSON.stringify(bodyOf(chat)['tools'])).not.toContain('look')
  })

  test('tools of MCP servers are not changed', async () => {
    const mcp = { type: 'mcp_tool_reference', server_name: 'a', name: 'look' }
    expect(await namesAfter([[{ type: 'tool_removal', tool: mcp }]], tools)).toContain('look')
  })

  test('an invalid definition is refused with its path', async () => {
    const response = await ask({ messages: conversation([define({ name: 'x' })]) })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('messages.1.content.0.tool.definition.input_schema')
  })

  test('a choice of a removed tool is refused', async () => {
    const messages = conversation([remove('look')])
    const response = await ask({ messages, tools, tool_choice: { type: 'tool', name: 'look' } })
    expect(response.status).toBe(400)
  })
})

test('an upstream of the protocol gets the changes as they are', async () => {
  const messages = conversation([remove('look')], [define(tool('new'))])
  const tools = [tool('look')]
  await (await ask({ model: 'native', messages, tools })).text()
  expect(bodyOf(native)).toMatchObject({ messages, tools })
})

describe('max_tokens: 0', () => {
  test('reaches an upstream of the protocol, which reads the prompt', async () => {
    const usage = { input_tokens: 41, output_tokens: 0, cache_creation_input_tokens: 40 }
    const message = {
      ...{ id: 'msg_up', type: 'message', role: 'assistant', model: 'up', content: [] },
      ...{ stop_reason: 'max_tokens', stop_sequence: null, usage },
    }
    native.answer({
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(message),
    })
    const chatCount = chat.requests.length
    for (const model of ['native', 'both']) {
      const response = await ask({
        model,
        max_tokens: 0,
        tool_choice: { type: 'any' },
        tools: [tool('a')],
      })
      expect(await response.json()).toMatchObject({
        content: [],
        stop_reason: 'max_tokens',
        usage: { input_tokens: 41, output_tokens: 0, cache_creation_input_tokens: 40 },
      })
      expect(bodyOf(native)['max_tokens']).toBe(0)
    }
    expect(chat.requests.length).toBe(chatCount)
  })

  test('is answered here for other upstreams', async () => {
    const count = chat.requests.length
    const response = await ask({ max_tokens: 0 })
    expect(await response.json()).toMatchObject({ content: [], stop_reason: 'max_tokens' })
    expect(chat.requests.length).toBe(count)
  })
})
