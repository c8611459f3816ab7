import { describe, expect, test } from 'bun:test'
import { ResponsesWebSocketSession } from 'openai/lib/responses/responses-websocket-session'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { eventually } from '#test/support/eventually.ts'
import { whole } from '#test/support/generations.ts'
import { chatStream } from '#test/support/recordings.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { chatPrompt, checkSocketLog } from '#test/support/socket-log.ts'
import {
  begin,
  called,
  gateway,
  hanging,
  has,
  lastPrompt,
  open,
  steer,
  tool,
  upstream,
  useStory,
} from './steering.ts'

/** Responses that their client steers while they run. */

useStory()

const argumentsEnd = chunk({ tool_calls: [{ index: 0, function: { arguments: '}' } }] })

describe('a steered response', () => {
  test.each([{ store: false }, { store: true }])(
    'keeps what it said, and another one goes on with the input ($store)',
    async ({ store }) => {
      const client = await open()
      const { aborted } = upstream.connections
      const before = upstream.requests.length
      const more = { store, stream_id: 'main', instructions: 'Tell.', metadata: { a: 'b' } }
      const id = await begin(client, more)
      steer(client, id)
      await eventually('both have ended', () => has(client, '"type":"response.completed"'))
      const { responses, steers, refusals } = await checkSocketLog(client.texts)
      expect(refusals).toEqual([])
      expect(responses).toMatchObject([
        {
          id,
          streamId: 'main',
          response: {
            status: 'incomplete',
            incomplete_details: { reason: 'steered' },
            output: [{ type: 'message', status: 'incomplete', content: [{ text: 'one ' }] }],
          },
        },
        {
          streamId: 'main',
          response: {
            status: 'completed',
            previous_response_id: id,
            instructions: 'Tell.',
            metadata: { a: 'b' },
            store,
          },
        },
      ])
      expect([...steers.values()]).toMatchObject([
        { responseId: id, events: [{ type: 'response.steer.accepted', stream_id: 'main' }] },
      ])
      expect(lastPrompt()).toEqual([
        'system: Tell.',
        'user: long story',
        'assistant: one ',
        'user: shorter',
      ])
      expect(upstream.requests).toHaveLength(before + 2)
      await upstream.until(({ connections }) => connections.aborted === aborted + 1)
      const usage = Object(responses[0]?.response?.['usage'])
      expect(usage).toMatchObject({ output_tokens: 1 })
      const found = await gateway.request(`/v1/responses/${id}`)
      expect(found.status).toBe(store ? 200 : 404)
    },
  )

  test('can be steered again in its successor, before requests that wait', async () => {
    const client = await open()
    const id = await begin(client, { stream_id: 's' })
    client.send({
      type: 'response.create',
      model: 'm',
      input: 'later',
      store: false,
      stream_id: 's',
    })
    await client.arrived()
    upstream.answer(({ body }) => (chatPrompt(body).length < 5 ? hanging : { body: whole }))
    steer(client, id)
    const created = () =>
      client.texts.filter((text) => text.startsWith('{"type":"response.created"'))
    await eventually('the successor began', () => created().length === 2)
    steer(client, JSON.parse(created()[1] ?? '').response.id, 'even shorter')
    upstream.answer({ body: whole })
    await eventually(
      'all are over',
      () =>
        created().length === 4 && client.texts.at(-1)?.includes('"response.completed"') === true,
    )
    const { responses } = await checkSocketLog(client.texts)
    expect(responses.map(({ response }) => Object(response)['previous_response_id'])).toEqual([
      null,
      id,
      responses[1]?.id,
      null,
    ])
    expect(lastPrompt()).toEqual(['user: later'])
  })

  test('of another protocol: the demo', async () => {
    const client = await open()
    client.send({ type: 'response.create', model: 'demo-long', input: 'a tale', store: false })
    await eventually('it speaks', () => has(client, 'output_text.delta'))
    steer(client, JSON.parse(client.texts[0] ?? '').response.id, 'stop')
    await eventually('it is over', () => has(client, '"reason":"steered"'))
  })

  test('has a request of its own for each part, in the log and in the usage', async () => {
    const made = await gateway.post('/v1/api-keys', { name: 'steer' })
    const { id: keyId, key } = Object(await made.json())
    const client = await open({ authorization: `Bearer ${key}` })
    const lines = gateway.logLines.length
    steer(client, await begin(client))
    await eventually('it is over', () => has(client, '"type":"response.completed"'))
    const logged = () =>
      gateway.logLines
        .slice(lines)
        .map((line) => JSON.parse(line))
        .filter(({ model }) => model === 'm')
    await eventually('both have lines', () => logged().length >= 2)
    expect(new Set(logged().map((line) => line.request_id)).size).toBe(2)
    await eventually('the records are written', async () => {
      const usage = await gateway.request(`/v1/usage?group_by=key&key=${keyId}`)
      return Object(await usage.json()).data[0]?.requests === 2
    })
  })
})

describe('a response whose client has to act', () => {
  test('completes; its input precedes that of the request with the results', async () => {
    const client = await open()
    const gate = Promise.withResolvers<void>()
    const body = chatStream([called, argumentsEnd, chunk({}, 'tool_calls')])
    const answer = { body, cutsAt: [body.indexOf('data:', 10)], nextPiece: () => gate.promise }
    const id = await begin(client, { tools: [tool] }, answer, 'function_call_arguments.delta')
    steer(client, id, 'in Celsius')
    const parts = [{ type: 'input_text', text: 'in verse' }]
    steer(client, id, [
      { role: 'user', content: parts },
      { type: 'message', role: 'user', content: 'and rhymes' },
    ])
    await client.arrived()
    gate.resolve()
    const pending = () => client.texts.filter((text) => text.includes('steer.pending'))
    await eventually('it waits', () => pending().length === 2)
    const first = await checkSocketLog(client.texts)
    expect(first.responses).toMatchObject([{ response: { status: 'completed' } }])
    expect([...first.steers.values()]).toMatchObject([
      {
        events: [
          {},
          {
            reason: 'waiting_for_required_input',
            required_input: [
              { type: 'function_call_output', call_id: 'call_a', name: 'get_weather' },
            ],
          },
        ],
      },
      { events: [{}, { reason: 'waiting_for_required_input' }] },
    ])
    const output = { type: 'function_call_output', call_id: 'call_a', output: 'rain' }
    const next = { model: 'm', input: [output], store: false, previous_response_id: id }
    client.send({ type: 'response.create', ...next })
    await eventually('it is over', () => has(client, `"previous_response_id":"${id}"`))
    await eventually(
      'it has ended',
      () => client.texts.at(-1)?.includes('"response.completed"') === true,
    )
    expect(lastPrompt()).toEqual([
      'user: long story',
      'assistant: ',
      'tool: rain',
      'user: in Celsius',
      'user: in verse',
      'user: and rhymes',
    ])
    // It is used once.
    client.send({ type: 'response.create', ...next })
    await eventually(
      'it is asked',
      () => upstream.requests.at(-1)?.body.includes('Celsius') === false,
    )
  })
})

test('the openai package steers one of its lanes', async () => {
  const client = await gateway.openai()
  const socket = new ResponsesWS(client)
  await eventually('it is open', () => socket.socket.readyState === WebSocket.OPEN)
  const session = new ResponsesWebSocketSession(socket, {
    maxLanes: 4,
    maxBufferedEvents: 10_000,
    maxBufferedBytes: 10_000_000,
  })
  const [story, quick] = [session.lane('story'), session.lane('quick')]
  upstream.answer(({ body }) =>
    chatPrompt(body).at(-1) === 'user: long story' ? hanging : { body: whole },
  )
  story.create({ model: 'm', input: 'long story', store: false })
  quick.create({ model: 'm', input: 'quick', store: false })
  const created = await story.receive()
  expect(created.type).toBe('response.created')
  expect((await quick.finalResponse()).output_text).toBe('one two')
  const { id } = Object(created)['response']
  const types: string[] = []
  while (!types.includes('response.output_text.delta')) types.push((await story.receive()).type)
  socket.send({ type: 'response.steer', previous_response_id: id, input: 'shorter' })
  expect((await story.receive()).type).toBe('response.steer.accepted')
  const steered = await story.finalResponse()
  expect(steered.incomplete_details).toEqual({ reason: 'steered' })
  const successor = await story.finalResponse()
  expect(successor).toMatchObject({ status: 'completed', previous_response_id: id })
  session.close()
  socket.close()
})
