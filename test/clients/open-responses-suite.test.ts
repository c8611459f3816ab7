import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { makePdf } from '#test/support/documents.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import {
  faultsOfEvent,
  faultsOfResponse,
  openResponsesExists,
} from '#test/support/open-responses.ts'
import { pngOf } from '#test/support/sample-images.ts'

/**
 * The scenarios of the compliance suite of Open Responses (openresponses.org), with the schemas of its
 * document: each response and each event of a stream conforms, and has the output that the scenario is
 * about. Its optional scenarios, file and web search, are absent: the document does not describe them.
 */

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const user = (content: unknown) => ({ type: 'message', role: 'user', content })
const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'The current weather of a place',
  parameters: {
    type: 'object',
    properties: { location: { type: 'string', description: 'City and country' } },
    required: ['location'],
  },
}
const weatherCall = {
  input: [user('What is the weather in Ghent?')],
  tools: [weather],
  tool_choice: { type: 'function', name: 'get_weather' },
}

async function create(body: object): Promise<JsonObject> {
  const httpResponse = await gateway.post('/v1/responses', { model: 'demo', ...body })
  expect(httpResponse.status).toBe(200)
  const response = asRecord(await httpResponse.json())
  expect(faultsOfResponse(response)).toEqual([])
  expect(response['status']).toBe('completed')
  return response
}

async function stream(body: object): Promise<readonly JsonObject[]> {
  const httpResponse = await gateway.post('/v1/responses', { model: 'demo', ...body, stream: true })
  expect(httpResponse.status).toBe(200)
  const frames = (await httpResponse.text()).split('\n\n').filter((frame) => frame !== '')
  expect(frames.pop()).toBe('data: [DONE]')
  const events = frames.map((frame) => asRecord(JSON.parse(frame.split('\ndata: ')[1] ?? '')))
  expect(events.flatMap(faultsOfEvent)).toEqual([])
  expect(faultsOfResponse(events.at(-1)?.['response'])).toEqual([])
  expect(events.at(-1)?.['type']).toBe('response.completed')
  return events
}

const outputOf = (response: JsonObject) => (response['output'] as JsonObject[]).map(asRecord)
const typesOf = (response: JsonObject) => outputOf(response).map(({ type }) => type)

describe.skipIf(!openResponsesExists)('the scenarios of Open Responses', () => {
  test('a text response', async () => {
    expect(typesOf(await create({ input: [user('Greet me in three words.')] }))).toContain(
      'message',
    )
  })

  test('a streamed response', async () => {
    const types = (await stream({ input: [user('Count to five.')] })).map(({ type }) => type)
    expect(types).toContain('response.output_text.delta')
  })

  test('a system message', async () => {
    const system = { type: 'message', role: 'system', content: 'Speak like a sailor.' }
    expect(typesOf(await create({ input: [system, user('Greet me.')] }))).toContain('message')
  })

  test('a tool call', async () => {
    expect(typesOf(await create(weatherCall))).toContain('function_call')
  })

  test('a streamed tool call', async () => {
    const events = await stream(weatherCall)
    const ofCalls = events.filter(({ item }) => asRecord(item)['type'] === 'function_call')
    expect(ofCalls.map(({ type }) => type)).toEqual([
      'response.output_item.added',
      'response.output_item.done',
    ])
    const types = events.map(({ type }) => type)
    expect(types).toContain('response.function_call_arguments.delta')
    expect(types).toContain('response.function_call_arguments.done')
  })

  test('the output of a tool call returns with previous_response_id', async () => {
    const first = await create(weatherCall)
    const call = outputOf(first).find(({ type }) => type === 'function_call')
    const output = {
      type: 'function_call_output',
      call_id: call?.['call_id'],
      output: '18 degrees',
    }
    const second = await create({ previous_response_id: first['id'], input: [output] })
    expect(typesOf(second)).toContain('message')
  })

  test('an image and a file', async () => {
    const image = `data:image/png;base64,${pngOf(8, 8).toString('base64')}`
    const pdf = Buffer.from(makePdf([['The title is Meadow']])).toString('base64')
    const parts = [
      { type: 'input_image', image_url: image },
      { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` },
    ]
    for (const part of parts) {
      const content = [{ type: 'input_text', text: 'What is this?' }, part]
      expect(typesOf(await create({ input: [user(content)] }))).toContain('message')
    }
  })

  test('several turns, in the input and by previous_response_id', async () => {
    const reply = { type: 'message', role: 'assistant', content: 'Hello Ann!' }
    const turns = [user('My name is Ann.'), reply, user('What is my name?')]
    expect(typesOf(await create({ input: turns }))).toContain('message')
    const first = await create({ input: 'Remember the word papaya.' })
    const next = { previous_response_id: first['id'], input: 'Which word was it?' }
    expect(typesOf(await create(next))).toContain('message')
  })
})
