import { afterAll, beforeAll, expect, test } from 'bun:test'
import { isRecord, parseJson } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  type GatewayProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { exchangeBytes, type ParsedAnswer, parseAnswer } from '#test/support/raw-exchange.ts'

let gateway: GatewayProcess
let token: string

beforeAll(async () => {
  gateway = await startGatewayProcess()
  token = await signToken()
})
afterAll(stopProcesses)

/** One request on its own connection; `start` is the request line. */
async function send(start: string, options: { headers?: string; body?: string } = {}) {
  const { headers = 'Host: gateway\r\n', body = '' } = options
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
  const answer = await exchangeBytes(
    gateway.port(),
    `${start}\r\n${headers}Authorization: Bearer ${token}\r\nConnection: close\r\n${length}\r\n${body}`,
  )
  return parseAnswer(answer)
}

/** The error body: always these four keys. */
function errorOf(answer: ParsedAnswer): Record<string, unknown> {
  expect(answer.headers['content-type']).toStartWith('application/json')
  const body = parseJson(answer.body)
  const error = isRecord(body) ? body['error'] : undefined
  if (!isRecord(error)) throw new Error(`no error body: ${answer.body}`)
  expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'type'])
  return error
}

test('a request with two Host headers is refused', async () => {
  for (const headers of ['Host: a\r\nHost: b\r\n', 'Host: a\r\nHost: a\r\n']) {
    const answer = await send('GET /v1/models HTTP/1.1', { headers })
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid_request' })
  }
})

test('an HTTP/1.0 client without a Host header is served, and its connection closed', async () => {
  const models = await send('GET /v1/models HTTP/1.0', { headers: '' })
  expect(models.status).toBe(200)
  const body = '{"model":"demo-fast","input":"hi","stream":true}'
  const stream = await send('POST /v1/responses HTTP/1.0', { headers: '', body })
  expect(stream.headers['transfer-encoding']).toBeUndefined()
  expect(stream.body).toEndWith('data: [DONE]\n\n')
})

test.each(['GET /nope', 'GET /v1', 'GET /v1/nope', 'POST /v1/chat/completions', 'OPTIONS /nope'])(
  '%s is not found, in the error shape of its surface',
  async (start) => {
    const answer = await send(`${start} HTTP/1.1`)
    expect(answer.status).toBe(404)
    const path = start.split(' ')[1] ?? ''
    expect(errorOf(answer)).toMatchObject({ type: 'not_found_error', param: null })
    expect(answer.body).toContain(`${path}.`)
  },
)

test.each([
  ['PATCH /v1/responses', 'GET, HEAD, POST'],
  ['PUT /v1/models', 'GET, HEAD'],
  ['POST /v1/models/demo', 'GET, HEAD'],
  ['PATCH /v1/api-keys', 'GET, HEAD, POST'],
  ['DELETE /readyz', 'GET, HEAD'],
  ['OPTIONS /v1/responses', 'GET, HEAD, POST'],
  ['TRACE /v1/models', 'GET, HEAD'],
])('%s is refused with the methods of the path: %s', async (start, allow) => {
  const answer = await send(`${start} HTTP/1.1`)
  expect([answer.status, answer.headers['allow']]).toEqual([405, allow])
  expect(errorOf(answer)).toMatchObject({ type: 'invalid_request_error', param: null })
})

test.each(['/readyz', '/v1/models', '/v1/models/demo', '/nope'])(
  'HEAD %s responds like GET, without a body',
  async (path) => {
    const head = await send(`HEAD ${path} HTTP/1.1`)
    const get = await send(`GET ${path} HTTP/1.1`)
    expect(head.status).toBe(get.status)
    expect(head.headers['content-length']).toBe(String(Buffer.byteLength(get.body)))
    expect(head.body).toBe('')
  },
)

test('the path is routed however short the host name is', async () => {
  for (const host of ['a', 'gw', 'gateway.example:8080', '[::1]:8080']) {
    const headers = `Host: ${host}\r\n`
    const model = await send('GET /v1/models/demo HTTP/1.1', { headers })
    expect(model.status).toBe(200)
    const unknown = await send('GET /v1/nope HTTP/1.1', { headers })
    expect(errorOf(unknown)['message']).toBe('No such endpoint: GET /v1/nope.')
  }
})

test('an invalid percent-encoded path is not found', async () => {
  for (const name of ['%zz', '%C0%80', '%']) {
    const answer = await send(`GET /v1/models/${name} HTTP/1.1`)
    expect(answer.status).toBe(404)
    expect(errorOf(answer)).toMatchObject({ code: 'model_not_found' })
  }
  for (const path of ['/v1/files/%zz', '/v1/vector_stores/%/', '/v1/conversations/%ff/items']) {
    const answer = await send(`GET ${path} HTTP/1.1`)
    expect(answer.status, path).toBe(404)
    expect(errorOf(answer)).toMatchObject({ type: 'not_found_error' })
  }
})

test('every response has its own request id, which failures log', async () => {
  const stream = '{"model":"demo-fast","input":"hi","stream":true}'
  const whole = '{"model":"demo-fast","input":"hi"}'
  const answers = await Promise.all([
    send('GET /livez HTTP/1.1'),
    send('GET /readyz HTTP/1.1'),
    send('GET /nope HTTP/1.1'),
    send('GET /v1/models HTTP/1.1'),
    send('HEAD /v1/models HTTP/1.1'),
    send('OPTIONS /v1/models HTTP/1.1'),
    send('GET /v1/models HTTP/1.1', { headers: 'Host: a\r\nHost: b\r\n' }),
    send('POST /v1/responses HTTP/1.1', { body: '{' }),
    send('POST /v1/responses HTTP/1.1', { body: whole }),
    send('POST /v1/responses HTTP/1.1', { body: stream }),
    send('POST /v1/responses HTTP/1.1', { body: '{"model":"demo-fail","input":"hi"}' }),
  ])
  const ids = answers.map(({ headers }) => headers['x-request-id'] ?? '')
  for (const id of ids) expect(id).toMatch(/^req_[0-9a-z]{20,}$/)
  expect(new Set(ids).size).toBe(answers.length)
  const failed = ids.filter((_, index) => (answers[index]?.status ?? 0) >= 400)
  expect(failed).toHaveLength(5)
  await eventually('the failures are in the log', () => {
    const logged = new Set(gateway.log().map((line) => line['request_id']))
    return failed.every((id) => logged.has(id))
  })
})
