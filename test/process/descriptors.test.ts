import { afterEach, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { parseJson } from '#lib/json.ts'
import { eventually } from '#test/support/eventually.ts'
import { type HeldUpstream, startHeldUpstream } from '#test/support/held-upstream.ts'
import {
  childrenOf,
  type GatewayProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { openSocket, parseAnswer } from '#test/support/raw-exchange.ts'
import { readTcpTable } from '#test/support/tcp-table.ts'

const openFilesMax = 512
let upstream: HeldUpstream | undefined

afterEach(async () => {
  await stopProcesses()
  await upstream?.stop()
})

async function startGateway(): Promise<GatewayProcess> {
  upstream = await startHeldUpstream()
  return startGatewayProcess({ openFilesMax, environment: { SLUICE_CONFIG: upstream.configFile } })
}

/** The whole response: up to the end of its body, or of the connection. */
async function exchange(port: number, request: string): Promise<string> {
  const socket = await openSocket(port, request)
  let answer = ''
  return new Promise((resolve) => {
    socket.on('close', () => resolve(answer))
    socket.on('data', (piece: Buffer) => {
      answer += piece.toString()
      if (!answer.endsWith('\r\n0\r\n\r\n')) return
      resolve(answer)
      socket.destroy()
    })
  })
}

function post(path: string, token: string, body: object): string {
  const text = JSON.stringify(body)
  return (
    `POST ${path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${token}\r\n` +
    `Content-Length: ${text.length}\r\n\r\n${text}`
  )
}

test('requests beyond the descriptor limit are refused, others complete, and the gateway recovers', async () => {
  const gateway = await startGateway()
  const workers = childrenOf(gateway.pid)
  const warning = await gateway.logged(
    'the limit of open files allows fewer streams than limits.streams_max',
  )
  const streams = Number(warning['streams'])
  expect(warning).toMatchObject({ limit: openFilesMax, streams_max: 10_000 })
  const token = await signToken()
  const request = post('/v1/responses', token, { model: 'held', input: 'hello', stream: true })

  // More at once than there are descriptors for their connections alone.
  const answers = Array.from({ length: openFilesMax }, () => exchange(gateway.port(), request))
  await eventually('as many streams run as there is room for', () => upstream?.held() === streams)
  const message = { model: 'held', max_tokens: 9, messages: [{ role: 'user', content: 'hello' }] }
  const refusedMessage = await exchange(gateway.port(), post('/compat/v1/messages', token, message))
  const alive = await gateway.request('/livez')
  upstream?.release()
  const parsed = (await Promise.all(answers)).map(parseAnswer)

  const served = parsed.filter(({ status }) => status === 200)
  const refused = parsed.filter(({ status }) => status === 503)
  expect(served).toHaveLength(streams)
  expect(refused).toHaveLength(answers.length - streams)
  for (const { body } of served) {
    expect(body).toContain('event: response.completed')
    expect(body).toContain('data: [DONE]')
  }
  for (const { headers, body } of refused) {
    expect(headers).toMatchObject({ 'retry-after': '1', connection: 'close' })
    expect(parseJson(body)).toEqual({
      error: {
        message: 'The server has no descriptor left for this request.',
        type: 'server_error',
        param: null,
        code: 'too_many_streams',
      },
    })
  }
  expect(parseAnswer(refusedMessage)).toMatchObject({ status: 529 })
  expect(parseJson(parseAnswer(refusedMessage).body)).toMatchObject({
    error: { type: 'overloaded_error', details: { error_code: 'too_many_streams' } },
  })
  expect(alive.status).toBe(200)

  const later = await gateway.ask({ model: 'held', input: 'again', stream: true })
  expect(await later.text()).toEndWith('data: [DONE]\n\n')
  expect(childrenOf(gateway.pid)).toEqual(workers)
})

/** Connections, each of which sends these bytes and then nothing. */
function openIdlers(port: number, count: number, bytes: string) {
  return Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1', () => bytes !== '' && socket.write(bytes))
    return socket.on('error', () => {})
  })
}

test.each([
  ['without a request', ''],
  ['between two requests', 'GET /livez HTTP/1.1\r\nHost: gateway\r\n\r\n'],
])(
  'more connections %s than the descriptor limit allows: streams run and start beside them',
  async (_, bytes) => {
    const gateway = await startGateway()
    const workers = childrenOf(gateway.pid)
    const token = await signToken()
    const request = post('/v1/responses', token, { model: 'held', input: 'hello', stream: true })
    const before = exchange(gateway.port(), request)
    await eventually('the stream runs', () => upstream?.held() === 1)

    const idlers = openIdlers(gateway.port(), openFilesMax + 200, bytes)
    // The kernel holds back connections without a request for some seconds.
    await gateway.logged('descriptor limit reached, closing idle connections')
    const beside = Array.from({ length: 20 }, () => exchange(gateway.port(), request))
    await eventually('others start', () => upstream?.held() === 21)
    expect((await gateway.request('/livez')).status).toBe(200)
    upstream?.release()
    for (const answer of await Promise.all([before, ...beside])) {
      expect(answer).toContain('event: response.completed')
      expect(answer).toContain('data: [DONE]')
    }
    const paused = 'descriptor limit reached, accepting paused'
    expect(gateway.log().filter(({ message }) => message === paused)).toEqual([])
    expect(childrenOf(gateway.pid)).toEqual(workers)
    for (const idler of idlers) idler.destroy()
  },
)

test.if(process.platform === 'linux')(
  'connections to an upstream that no request uses are closed when descriptors run short',
  async () => {
    const gateway = await startGateway()
    const port = Number(new URL(upstream?.baseUrl ?? '').port)
    const connected = () =>
      readTcpTable().filter(({ remotePort, state }) => remotePort === port && state === '01').length
    const token = await signToken()
    const request = post('/v1/responses', token, { model: 'held', input: 'hello', stream: true })
    const answers = Array.from({ length: 5 }, () => exchange(gateway.port(), request))
    await eventually('the streams run', () => upstream?.held() === 5)
    upstream?.release()
    await Promise.all(answers)
    expect(connected()).toBe(5)

    const idlers = openIdlers(gateway.port(), openFilesMax + 200, '')
    await gateway.logged('descriptor limit reached, closing idle connections')
    expect(connected()).toBe(0)
    for (const idler of idlers) idler.destroy()
  },
)

test('unfinished requests at the descriptor limit delay other clients and break no stream', async () => {
  const gateway = await startGateway()
  const workers = childrenOf(gateway.pid)
  const token = await signToken()
  const request = post('/v1/responses', token, { model: 'held', input: 'hello', stream: true })
  const stream = exchange(gateway.port(), request)
  await eventually('the stream runs', () => upstream?.held() === 1)

  const idlers = openIdlers(gateway.port(), openFilesMax, 'POST /v1/responses HTTP/1.1\r\nHost: ')
  await gateway.logged('descriptor limit reached, accepting paused')
  await expect(openSocket(gateway.port(), '')).rejects.toThrow('ECONNREFUSED')
  for (const idler of idlers) idler.destroy()
  await gateway.logged('accepting resumed')

  upstream?.release()
  expect(await stream).toContain('data: [DONE]')
  const later = await gateway.ask({ model: 'held', input: 'again', stream: true })
  expect(await later.text()).toEndWith('data: [DONE]\n\n')
  expect(childrenOf(gateway.pid)).toEqual(workers)
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
})
