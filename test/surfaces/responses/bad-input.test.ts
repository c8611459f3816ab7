import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { readFailure } from '#test/support/refusals.ts'

/** Invalid requests over HTTP: status, code and invalid field. */

const inputCharsMax = 10 * 1024 * 1024

let gateway: Gateway
/** Limits bodies to 64 KiB. */
let narrow: Gateway

beforeAll(async () => {
  gateway = await startGateway({
    upstream: [{ api: 'demo' }],
    model: [
      { name: 'an-embedder', mode: 'embed' },
      { name: 'a-listener', mode: 'transcribe' },
    ],
  })
  narrow = await startGateway({ limits: { requestBytesMax: 65_536 } })
})
afterAll(async () => {
  await gateway.stop()
  await narrow.stop()
})

const model = 'demo-fast'
const weather = { type: 'function', name: 'get_weather', parameters: {} }
const schemaFormat = (format: object) => ({ text: { format: { type: 'json_schema', ...format } } })

type Case = [what: string, body: unknown, expected: [number, string, string | null]]

const cases: Case[] = [
  ['an empty body', '', [400, 'malformed_json', null]],
  ['truncated JSON', '{"model":"demo', [400, 'malformed_json', null]],
  ['invalid JSON', 'model=demo&input=x', [400, 'malformed_json', null]],
  ['a list', '[]', [400, 'invalid_request', null]],
  ['null', 'null', [400, 'invalid_request', null]],
  ['JSON of 200 levels', '['.repeat(200) + ']'.repeat(200), [400, 'invalid_request', null]],
  ['JSON of a million levels', '['.repeat(1_000_000), [400, 'invalid_request', null]],
  ['an empty object', {}, [400, 'invalid_request', 'model']],
  ['no model', { input: 'x' }, [400, 'invalid_request', 'model']],
  ['a model that is a number', { model: 5, input: 'x' }, [400, 'invalid_request', 'model']],
  ['an unknown model', { model: 'nope', input: 'x' }, [404, 'model_not_found', 'model']],
  ['an embedder', { model: 'an-embedder', input: 'x' }, [400, 'invalid_request', 'model']],
  ['a transcriber', { model: 'a-listener', input: 'x' }, [400, 'invalid_request', 'model']],
  ['no input', { model }, [400, 'invalid_request', 'input']],
  ['a null input', { model, input: null }, [400, 'invalid_request', 'input']],
  ['an empty string', { model, input: '' }, [400, 'invalid_request', 'input']],
  ['an empty list', { model, input: [] }, [400, 'invalid_request', 'input']],
  ['a number as input', { model, input: 5 }, [400, 'invalid_request', 'input']],
  ['an object as input', { model, input: {} }, [400, 'invalid_request', 'input']],
  ['a null in the list', { model, input: [null] }, [400, 'invalid_request', 'input[0]']],
  ['a string in the list', { model, input: ['x'] }, [400, 'invalid_request', 'input[0]']],
  [
    'a null later in the list',
    { model, input: [{ role: 'user', content: 'x' }, null] },
    [400, 'invalid_request', 'input[1]'],
  ],
  [
    'content of another type',
    { model, input: [{ role: 'user', content: 5 }] },
    [400, 'invalid_request', 'input[0].content'],
  ],
  [
    'an unknown role',
    { model, input: [{ role: 'king', content: 'x' }] },
    [400, 'invalid_request', 'input[0].role'],
  ],
  [
    'messages instead of input',
    { model, messages: [{ role: 'user', content: 'x' }] },
    [400, 'user_message_missing', 'input'],
  ],
  ['messages without a model', { messages: [] }, [400, 'user_message_missing', 'input']],
  [
    'a forced tool that is not in tools',
    { model, input: 'x', tools: [weather], tool_choice: { type: 'function', name: 'other' } },
    [400, 'invalid_request', 'tool_choice'],
  ],
  [
    'a forced tool without tools',
    { model, input: 'x', tool_choice: 'required' },
    [400, 'invalid_request', 'tool_choice'],
  ],
  [
    'a tool without a name',
    { model, input: 'x', tools: [{ type: 'function' }] },
    [400, 'invalid_request', 'tools[0].name'],
  ],
  [
    'a schema without a name',
    { model, input: 'x', ...schemaFormat({ schema: {} }) },
    [400, 'invalid_request', 'text.format.name'],
  ],
  [
    'a missing schema',
    { model, input: 'x', ...schemaFormat({ name: 'n' }) },
    [400, 'invalid_request', 'text.format.schema'],
  ],
  [
    'an invalid schema',
    { model, input: 'x', ...schemaFormat({ name: 'n', schema: { type: 'objekt' } }) },
    [400, 'invalid_request', 'text.format.schema'],
  ],
  [
    'a temperature as a string',
    { model, input: 'x', temperature: '1' },
    [400, 'invalid_request', 'temperature'],
  ],
  ['stream as a string', { model, input: 'x', stream: 'yes' }, [400, 'invalid_request', 'stream']],
  [
    'an unknown previous response',
    { model, input: 'x', previous_response_id: 'resp_1' },
    [400, 'previous_response_not_found', 'previous_response_id'],
  ],
  [
    'an output without its call',
    { model, input: [{ type: 'function_call_output', call_id: 'a', output: 'x' }] },
    [400, 'invalid_request', 'input[0].call_id'],
  ],
]

describe.each([
  ['as is', (body: unknown) => body],
  [
    'with streaming',
    (body: unknown) =>
      typeof body === 'object' && body !== null && !('stream' in body)
        ? { ...body, stream: true }
        : body,
  ],
])('a request %s', (_way, shape) => {
  test.each(cases)('with %s', async (_what, body, expected) => {
    const failure = await readFailure(await gateway.post('/v1/responses', shape(body)), gateway)
    expect([failure.status, failure.code, failure.param]).toEqual(expected)
    expect(failure.type).toBe(expected[0] === 404 ? 'not_found_error' : 'invalid_request_error')
  })
})

test('unknown fields and unknown items are no error', async () => {
  const input = [
    { type: 'acme:thing', id: 'x' },
    { role: 'user', content: 'x' },
  ]
  const httpResponse = await gateway.post('/v1/responses', {
    model,
    input,
    client_metadata: {},
    foo: 1,
  })
  expect(httpResponse.status).toBe(200)
})

describe('the length of a request', () => {
  test('at the limit is accepted, and one character more is not', async () => {
    const ask = (chars: number) =>
      gateway.post('/v1/responses', { model, input: 'x'.repeat(chars) })
    const taken = await ask(inputCharsMax)
    expect(taken.status).toBe(200)
    await taken.text()
    const failure = await readFailure(await ask(inputCharsMax + 1), gateway)
    expect([failure.status, failure.code, failure.param]).toEqual([
      413,
      'request_too_large',
      'input',
    ])
  })

  test('over the limit is refused by its announced length', async () => {
    const answer = await narrow.post('/v1/responses', { model, input: 'x'.repeat(65_536) })
    const failure = await readFailure(answer, narrow)
    expect([failure.status, failure.code]).toEqual([413, 'request_too_large'])
  })

  test('over the limit is refused while it arrives in chunks', async () => {
    const text = JSON.stringify({ model, input: 'x'.repeat(65_536) })
    const body = new ReadableStream({
      async start(controller) {
        for (let from = 0; from < text.length; from += 8_192) {
          controller.enqueue(new TextEncoder().encode(text.slice(from, from + 8_192)))
          await Bun.sleep(1)
        }
        controller.close()
      },
    })
    const answer = await narrow.request('/v1/responses', { method: 'POST', body })
    const failure = await readFailure(answer, narrow)
    expect([failure.status, failure.code]).toEqual([413, 'request_too_large'])
  })

  test('the gateway still works afterwards', async () => {
    const answer = await narrow.post('/v1/responses', { model, input: 'x' })
    expect(answer.status).toBe(200)
  })
})

describe('unknown paths', () => {
  test.each([
    ['POST', '/v1/chat/completions', 404, 'not_found'],
    ['GET', '/v1/chat/completions', 404, 'not_found'],
    ['POST', '/v1/nothing', 404, 'not_found'],
    ['POST', '/', 405, 'method_not_allowed'],
    ['PUT', '/v1/responses', 405, 'method_not_allowed'],
  ])('%s %s', async (method, path, status, code) => {
    const body = JSON.stringify({ model, messages: [] })
    const httpResponse = await gateway.request(path, method === 'GET' ? {} : { method, body })
    const failure = await readFailure(httpResponse, gateway)
    expect([failure.status, failure.code]).toEqual([status, code])
  })
})

test('two Host headers are refused', async () => {
  const body = JSON.stringify({ model, input: 'x' })
  const head = [
    'POST /v1/responses HTTP/1.1',
    'Host: one.example',
    'Host: two.example',
    `Authorization: Bearer ${await gateway.token()}`,
    `Content-Length: ${body.length}`,
    'Connection: close',
  ]
  const answer = await exchangeRaw(gateway.port, `${head.join('\r\n')}\r\n\r\n${body}`)
  expect(answer).toStartWith('HTTP/1.1 400 ')
  const sent = answer.slice(answer.indexOf('\r\n\r\n') + 4)
  expect(JSON.parse(sent)).toMatchObject({ error: { code: 'invalid_request', param: null } })
})

/** Sends bytes and resolves with everything received until the connection ends. */
function exchangeRaw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (piece) => {
      received += piece.toString()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(received))
  })
}
