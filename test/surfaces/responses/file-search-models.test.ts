import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { functionTool } from '#test/inference/tool-loop/looping.ts'
import { ann, fillCollection } from '#test/support/fill-collection.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import {
  type ReplayAnswer,
  type ReplayUpstream,
  startReplayUpstream,
} from '#test/support/replay-upstream.ts'
import { chunk, nativeAnswer } from '#test/support/scripted-answers.ts'

/** File search with models of other servers, and their requests. */

let gateway: Gateway
let upstream: ReplayUpstream
let ids: Readonly<Record<string, string>>
beforeAll(async () => {
  upstream = await startReplayUpstream({ body: '' })
  const { baseUrl: url } = upstream
  gateway = await startGateway({
    upstream: [
      { url, models: ['chat'] },
      { url, api: 'responses', models: ['native'] },
    ],
  })
  const files = {
    'leave.txt': 'Holiday may be carried over until March.',
    'travel.txt': 'Trains are booked by the travel desk.',
  }
  ids = (await fillCollection(gateway, ann, { name: 'docs', files })).fileIds
})
afterEach(() => upstream.answer({ body: '' }))
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const tool = { type: 'file_search', vector_store_ids: ['docs'], max_num_results: 1 }
const mine = { ...functionTool('mine'), parameters: { type: 'object', properties: {} } }

type Call = readonly [name: string, args: object]

function calling(...calls: readonly Call[]): string {
  const pieces = calls.map(([name, args], index) => ({
    tool_calls: [
      {
        index,
        id: `call_${index}`,
        type: 'function',
        function: { name, arguments: JSON.stringify(args) },
      },
    ],
  }))
  return chatStream([...pieces.map((delta) => chunk(delta)), chunk({}, 'tool_calls')])
}

function saying(...pieces: readonly string[]): string {
  return chatStream([...pieces.map((content) => chunk({ content })), chunk({}, 'stop')])
}

/** The responses to the turns of one request, in order. */
function script(...answers: readonly (string | ReplayAnswer)[]): void {
  const left = [...answers]
  upstream.answer(() => {
    const next = left.shift() ?? { status: 500, body: '{}' }
    return typeof next === 'string' ? { body: next } : next
  })
}

async function ask(fields: object): Promise<JsonObject> {
  const body = { model: 'chat', input: 'Holiday?', tools: [tool], store: false, ...fields }
  const httpResponse = await gateway.post('/v1/responses', body)
  return asRecord(await httpResponse.json())
}

const output = (response: JsonObject): JsonObject[] =>
  Array.isArray(response['output']) ? response['output'].filter(isRecord) : []
const types = (response: JsonObject) => output(response).map(({ type }) => type)
const textPart = (response: JsonObject) =>
  output(response).flatMap(({ content }) => (Array.isArray(content) ? content : []))[0]
/** The requests of the model, turn by turn. */
const asks = () =>
  upstream.requests.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body))

const search: Call = ['file_search', { queries: ['holiday carried over'] }]
const citing = 'Until March 【1】. Ask again 【7】 if 【1'

describe('a model with file search', () => {
  test('gets a function, and passages with markers', async () => {
    script(calling(search), saying('Until March 【1】.'))
    const response = await ask({})
    expect(types(response)).toEqual(['file_search_call', 'message'])
    const [first, second] = asks().slice(-2)
    expect(first.tools).toMatchObject([{ type: 'function', function: { name: 'file_search' } }])
    expect(second.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringContaining(
        'marker="【1】" file="leave.txt">\nHoliday may be carried over until March.',
      ),
    })
    expect(textPart(response)).toMatchObject({
      text: 'Until March.',
      annotations: [
        { type: 'file_citation', file_id: ids['leave.txt'], filename: 'leave.txt', index: 11 },
      ],
    })
  })

  test('produces the same output however it is split, streamed or not', async () => {
    const shown = { text: 'Until March. Ask again 【7】 if 【1', annotations: [{ index: 11 }] }
    for (let cut = 0; cut <= citing.length; cut++) {
      for (const stream of [true, false]) {
        script(calling(search), saying(citing.slice(0, cut), citing.slice(cut)))
        const body = { model: 'chat', input: 'Holiday?', tools: [tool], store: false, stream }
        const text = await (await gateway.post('/v1/responses', body)).text()
        const last = stream ? text.split('\n\n').at(-3) : text
        const { response = JSON.parse(text) } = stream
          ? JSON.parse(last?.split('data: ')[1] ?? '')
          : {}
        expect(textPart(response)).toMatchObject(shown)
      }
    }
  })

  test('can ask one question in its own format, and gets errors for others', async () => {
    const call = (args: object): Call => ['file_search', args]
    script(
      calling(call({ query: 'holiday' }), call({ q: 'holiday' }), call({ queries: [' '] })),
      saying('So.'),
    )
    const response = await ask({})
    expect(output(response).slice(0, 3)).toMatchObject([
      { status: 'completed', queries: ['holiday'] },
      { status: 'failed', queries: [], results: null },
      { status: 'failed', queries: [' '], results: null },
    ])
    const lastMessages = asks().at(-1).messages.slice(-3)
    expect(lastMessages.map(({ content }: { content: string }) => content)).toEqual([
      expect.stringContaining('【1】'),
      'The search failed: "queries" must be a list of texts.',
      'The search failed: "queries" must not be empty.',
    ])
    expect(response['status']).toBe('completed')
  })

  test('continues the numbering in a second search, even if it must stop searching', async () => {
    const again: Call = ['file_search', { queries: ['trains'] }]
    script(calling(search), calling(again), saying('By train 【2】 until March 【1】.'))
    const only = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'file_search' }] }
    const response = await ask({ tools: [mine, tool], tool_choice: only })
    expect(types(response)).toEqual(['file_search_call', 'file_search_call', 'message'])
    expect(textPart(response)).toMatchObject({
      text: 'By train until March.',
      annotations: [{ filename: 'travel.txt' }, { filename: 'leave.txt' }],
    })
    const [first, second] = asks().slice(-3)
    expect(first).toMatchObject({ tools: [{ function: { name: 'file_search' } }] })
    expect(first.tool_choice).toBe('required')
    expect(second.tools).toEqual(first.tools)
  })

  test('gets another function name if the client has a tool of that name', async () => {
    const own = { ...mine, name: 'file_search' }
    script(calling(['file_search_2', { queries: ['holiday'] }]), saying('So 【1】.'))
    expect(types(await ask({ tools: [own, tool] }))).toEqual(['file_search_call', 'message'])
    script(calling(['file_search', {}]))
    expect(types(await ask({ tools: [own, tool] }))).toEqual(['function_call'])
  })
})

describe('a search among other tools', () => {
  test('runs beside a call that the client has to answer', async () => {
    script(calling(search, ['mine', {}]))
    const response = await ask({ tools: [mine, tool] })
    expect(types(response)).toEqual(['file_search_call', 'function_call'])
    expect(response['status']).toBe('completed')
  })

  test('can be forced by tool_choice, once', async () => {
    script(calling(search), saying('So.'))
    await ask({ tools: [mine, tool], tool_choice: { type: 'file_search' } })
    const [first, second] = asks().slice(-2)
    expect(first.tool_choice).toEqual({ type: 'function', function: { name: 'file_search' } })
    expect(second.tool_choice ?? 'auto').toBe('auto')
  })

  test.each([['none'], [{ type: 'allowed_tools', tools: [{ type: 'function', name: 'mine' }] }]])(
    'is not available if tool_choice is %j',
    async (toolChoice) => {
      script(saying('So.'))
      await ask({ tools: [mine, tool], tool_choice: toolChoice })
      expect(JSON.stringify(asks().at(-1).tools ?? [])).not.toContain('file_search')
    },
  )

  test('counts against max_tool_calls', async () => {
    script(calling(search, ['file_search', { queries: ['trains'] }]), saying('So.'))
    const response = await ask({ max_tool_calls: 1 })
    expect(output(response).map(({ status }) => status)).toEqual([
      'completed',
      'failed',
      'completed',
    ])
    expect(asks().at(-1).tools).toBeUndefined()
  })
})

test('leaves passages that a later turn can cite without another search', async () => {
  script(calling(search), saying('Until March 【1】.'))
  const { id } = await ask({ store: true })
  script(saying('As I said 【1】.'))
  const response = await ask({ previous_response_id: id, input: 'Really?', tools: [] })
  expect(textPart(response)).toMatchObject({
    text: 'As I said.',
    annotations: [{ file_id: ids['leave.txt'] }],
  })
  const { messages, tools } = asks().at(-1)
  expect(tools).toBeUndefined()
  const lastMessages = messages.map(({ role, content }: { role: string; content: unknown }) =>
    role === 'tool' ? content : role,
  )
  expect(lastMessages).toEqual([
    'user',
    'assistant',
    expect.stringContaining('marker="【1】" file="leave.txt">\nHoliday'),
    'assistant',
    'user',
  ])
})

test('a native server gets a function and its result', async () => {
  const args = JSON.stringify('{"query":"holiday"}')
  upstream.answer(({ body }) => ({ body: nativeAnswer(body).replaceAll('"{}"', args) }))
  const response = await ask({ model: 'native' })
  expect(types(response)).toEqual(['file_search_call', 'message'])
  expect(asks().at(-1).input.slice(-2)).toMatchObject([
    { type: 'function_call', name: 'file_search' },
    {
      type: 'function_call_output',
      output: expect.stringContaining('marker="【1】" file="leave.txt">'),
    },
  ])
})
