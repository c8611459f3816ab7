import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import type {
  FileSearchTool,
  Response,
  ResponseInput,
  ResponseOutputItem,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses'
import { eventually } from '#test/support/eventually.ts'
import { ann, fillCollection } from '#test/support/fill-collection.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSocket } from '#test/support/socket-client.ts'

/** File search of a demo model in the `openai` package. */

let gateway: Gateway
let client: OpenAI
let docs: Awaited<ReturnType<typeof fillCollection>>
beforeAll(async () => {
  gateway = await startGateway()
  client = await gateway.openai()
  docs = await fillCollection(gateway, ann, {
    name: 'docs',
    files: {
      'leave.txt': 'Holiday may be carried over until March.',
      'sick.txt': 'Sick leave needs a note.',
      'travel.txt': 'Trains are booked by the travel desk.',
    },
  })
})
afterAll(() => gateway.stop())

const model = 'demo-fast'
const input = 'Until when may holiday be carried over?'
const tool: FileSearchTool = { type: 'file_search', vector_store_ids: ['docs'] }
const tools = [tool]
const params = { model, input, tools }

const answerText =
  'It says in leave.txt: "Holiday may be carried over until March."\n\nI am a demo model and run without a network.'
const annotation = () => ({
  type: 'file_citation',
  file_id: docs.fileIds['leave.txt'],
  filename: 'leave.txt',
  index: answerText.indexOf('\n'),
})

/** Without the fields that differ between responses. */
function plain(output: readonly ResponseOutputItem[]): object[] {
  return output.map(({ id: _, ...item }) => item)
}

function expectCited({ output, output_text, status }: Response, results: unknown = null): void {
  expect(status).toBe('completed')
  expect(plain(output)).toMatchObject([
    { type: 'file_search_call', status: 'completed', queries: [input], results },
    {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [
        { type: 'output_text', text: answerText, annotations: [annotation()], logprobs: [] },
      ],
    },
  ] as object[])
  expect(output_text).toBe(answerText)
}

const collect = (stream: AsyncIterable<ResponseStreamEvent>) => Array.fromAsync(stream)

describe('a response with a search', () => {
  test('cites the quoted passage', async () => {
    expectCited(await client.responses.create(params))
  })

  test.each(['demo', 'demo-tools', 'demo-reasoning'])('works with %s as well', async (other) => {
    const { output, output_text } = await client.responses.create({ ...params, model: other })
    expect(output_text).toBe(answerText)
    expect(output.at(-1)).toMatchObject({ content: [{ annotations: [annotation()] }] })
  })

  test('is the same with the id of the collection', async () => {
    const byId = [{ ...tool, vector_store_ids: [docs.id] }]
    expectCited(await client.responses.create({ ...params, tools: byId }))
  })

  test('is the same in a stream, event by event', async () => {
    const stream = client.responses.stream({ ...params, store: false })
    const events = await collect(stream)
    expectCited(await stream.finalResponse())
    const types = events.map(({ type }) => type.replace('response.', ''))
    expect(types.slice(2, 9)).toEqual([
      'output_item.added',
      'file_search_call.in_progress',
      'file_search_call.searching',
      'file_search_call.completed',
      'output_item.done',
      'output_item.added',
      'content_part.added',
    ])
    const text = types.slice(9, -4)
    const added = text.indexOf('output_text.annotation.added')
    expect(text.filter((type) => type !== 'output_text.delta')).toEqual([text[added] ?? ''])
    const before = events.slice(9, 9 + added)
    const said = before.map((event) => ('delta' in event ? event.delta : '')).join('')
    expect(said).toHaveLength(annotation().index)
    expect(events[9 + added]).toMatchObject({ annotation_index: 0, annotation: annotation() })
  })

  test('contains the results on request', async () => {
    const include = ['file_search_call.results' as const]
    const response = await client.responses.create({ ...params, include })
    const [call] = response.output
    expect(call).toMatchObject({
      results: [
        {
          file_id: docs.fileIds['leave.txt'],
          filename: 'leave.txt',
          score: 1,
          text: 'Holiday may be carried over until March.',
          attributes: {},
        },
        {},
        {},
      ],
    })
    const { id } = response
    expect((await client.responses.retrieve(id, { include })).output).toEqual(response.output)
    expectCited(await client.responses.retrieve(id))
  })

  test('returns the requested number of results, and respects the filters', async () => {
    const found = async (fields: Partial<FileSearchTool>) => {
      const { output } = await client.responses.create({
        ...params,
        tools: [{ ...tool, ...fields }],
        include: ['file_search_call.results'],
      })
      const [call] = output
      if (call?.type !== 'file_search_call') throw new Error('no search')
      return call.results?.map(({ filename }) => filename)
    }
    expect(await found({ max_num_results: 1 })).toEqual(['leave.txt'])
    const travel = { type: 'eq' as const, key: 'filename', value: 'travel.txt' }
    expect(await found({ filters: travel })).toEqual(['travel.txt'])
    expect(await found({ filters: { ...travel, value: 'none' } })).toEqual([])
  })

  test('without results says so and cites nothing', async () => {
    const none = { type: 'eq' as const, key: 'filename', value: 'none' }
    const response = await client.responses.create({
      ...params,
      tools: [{ ...tool, filters: none }],
    })
    expect(response.output_text).toStartWith('The tool returned: Nothing was found.')
    expect(JSON.stringify(response.output)).not.toContain('file_citation')
  })
})

describe('a stored response with a search', () => {
  test('can be streamed again, from any event', async () => {
    const whole = await collect(await client.responses.create({ ...params, stream: true }))
    const [first] = whole
    if (first?.type !== 'response.created') throw new Error('no response')
    const { id } = first.response
    expect(await collect(await client.responses.retrieve(id, { stream: true }))).toEqual(whole)
    const after = whole.findIndex(({ type }) => type.endsWith('annotation.added')) - 1
    const rest = await client.responses.retrieve(id, { stream: true, starting_after: after })
    expect(await collect(rest)).toEqual(whole.slice(after + 1))
  })

  test('can run in the background', async () => {
    const { id } = await client.responses.create({ ...params, background: true })
    await eventually('it is over', async () => {
      const { status } = await client.responses.retrieve(id)
      return status === 'completed'
    })
    expectCited(await client.responses.retrieve(id))
  })
})

describe('search results', () => {
  const secondInput = 'recall'
  /** The demo counts the words of its input as tokens. */
  const passageWords = 20

  test('are still known to the model in the next turn', async () => {
    const first = await client.responses.create(params)
    const next = { model, input: secondInput, previous_response_id: first.id }
    const { usage } = await client.responses.create(next)
    const said = `${input} ${first.output_text}`.split(/\s+/).length
    expect(usage?.input_tokens).toBeGreaterThan(said + passageWords)
  })

  test('are known again if the client sends them back', async () => {
    const include = ['file_search_call.results' as const]
    const first = await client.responses.create({ ...params, include, store: false })
    const history = [{ role: 'user', content: input }, ...first.output] as ResponseInput
    const replay = async (items: ResponseInput) =>
      (await client.responses.create({ model, input: items, store: false })).usage?.input_tokens
    const hidden = history.map((item) => ('results' in item ? { ...item, results: null } : item))
    const question = { role: 'user' as const, content: secondInput }
    const withResults = (await replay([...history, question])) ?? 0
    const without = (await replay([...hidden, question])) ?? 0
    expect(withResults).toBeGreaterThan(without + passageWords)
  })
})

test('a connection with many turns searches in each of them, stored or not', async () => {
  const headers = { authorization: `Bearer ${await gateway.token()}` }
  const socket = await openSocket(gateway.port, { headers })
  let previous: unknown
  for (const store of [true, false]) {
    const { response } = await socket.turn({
      type: 'response.create',
      ...params,
      store,
      ...(previous === undefined ? {} : { previous_response_id: previous }),
    })
    const output = response?.['output'] as Response['output']
    expectCited({ ...response, output, output_text: answerText } as Response)
    previous = response?.['id']
  }
  socket.socket.destroy()
})
