import { afterEach, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { readEvents } from '#test/support/event-reading.ts'
import {
  childrenOf,
  type GatewayProcess,
  isAlive,
  killProcess,
  launchGateway,
  signToken,
  startGatewayProcess,
  stopProcesses,
  temporaryFolder,
} from '#test/support/process.ts'
import { openSocket } from '#test/support/raw-exchange.ts'

afterEach(stopProcesses)

/** The demo model emits about thirty words per second. */
const prompt = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ')
const longPrompt = Array.from({ length: 90 }, (_, index) => `word${index}`).join(' ')
/** In JSON six bytes per character: more than the kernel buffers hold. */
const hugePrompt = '\u0001'.repeat(4_000_000)

async function openStream(gateway: GatewayProcess, body: object) {
  const answer = await gateway.ask({ stream: true, ...body })
  expect(answer.status).toBe(200)
  const events = readEvents(answer)
  await events.until(/output_text\.delta/)
  return events
}

/** A request of which only the first bytes of the response are read until the test continues. */
async function askWithoutReading({ port }: GatewayProcess, body: object) {
  const text = JSON.stringify(body)
  const token = await signToken()
  const pieces: Buffer[] = []
  const socket = connect(port(), '127.0.0.1')
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.on('error', () => {})
  socket.write(
    `POST /v1/responses HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${token}\r\n` +
      `Connection: close\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  )
  await new Promise<void>((resolve) => {
    socket.once('data', (piece: Buffer) => {
      socket.pause()
      pieces.push(piece)
      resolve()
    })
  })
  return {
    async readToEnd(): Promise<Buffer> {
      socket.on('data', (piece: Buffer) => pieces.push(piece))
      socket.resume()
      await closed
      return Buffer.concat(pieces)
    },
  }
}

test('after SIGTERM new requests are refused, a running stream finishes, and the process exits cleanly', async () => {
  const gateway = await startGatewayProcess()
  const events = await openStream(gateway, { model: 'demo', input: longPrompt })
  gateway.signal('SIGTERM')
  await gateway.logged('stopping')

  const probe = await fetch(`${gateway.url()}/readyz`)
  expect(probe.status).toBe(503)
  const liveProbe = await fetch(`${gateway.url()}/livez`)
  expect(liveProbe.status).toBe(200)
  const metrics = await fetch(`${gateway.url()}/metrics`)
  expect(metrics.status).toBe(200)
  expect(await metrics.text()).toMatch(/^sluice_generations_running 1$/m)
  const refused = await gateway.ask({ model: 'demo', input: 'too late' })
  expect(refused.status).toBe(503)
  expect(refused.headers.get('connection')).toBe('close')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await refused.json()).toEqual({
    error: {
      message: 'The server is shutting down.',
      type: 'server_error',
      param: null,
      code: 'draining',
    },
  })
  // A path that only ends like a probe is no probe.
  expect((await gateway.request('/v1/models?of=/livez')).status).toBe(503)
  expect(events.text()).not.toContain('response.completed')

  const whole = await events.whole()
  expect(whole).toContain('event: response.completed\n')
  expect(whole).toContain('word89')
  expect(whole).toEndWith('data: [DONE]\n\n')
  expect(await gateway.exited).toBe(0)
})

test('SIGINT stops like SIGTERM', async () => {
  const gateway = await startGatewayProcess()
  const events = await openStream(gateway, { model: 'demo', input: prompt })
  gateway.signal('SIGINT')
  expect(await gateway.logged('stopping')).toMatchObject({ running: 1 })
  expect(await events.whole()).toEndWith('data: [DONE]\n\n')
  expect(await gateway.exited).toBe(0)
})

test('one Ctrl-C, which every process of the group receives and some forward, kills nothing', async () => {
  const gateway = await startGatewayProcess()
  const events = await openStream(gateway, { model: 'demo', input: prompt })
  const workers = childrenOf(gateway.pid)
  // At once: a later signal would count as another Ctrl-C.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGINT'] as const) {
    for (const pid of [gateway.pid, ...workers]) killProcess(pid, signal)
  }
  expect(await gateway.logged('stopping')).toMatchObject({ running: 1 })
  expect(await events.whole()).toEndWith('data: [DONE]\n\n')
  expect(await gateway.exited).toBe(0)
})

test('a stream that outlasts the grace period ends with an error event and a complete body', async () => {
  const gateway = await startGatewayProcess({ environment: { SLUICE_DRAIN_MS: '200' } })
  const events = await openStream(gateway, { model: 'demo-long', input: 'count' })
  gateway.signal('SIGTERM')
  const whole = await events.whole()
  const [, error] = /^event: error\ndata: (.*)$/m.exec(whole) ?? []
  expect(JSON.parse(error ?? '')).toMatchObject({ type: 'error', code: 'draining' })
  const [, failed] = /^event: response\.failed\ndata: (.*)$/m.exec(whole) ?? []
  expect(JSON.parse(failed ?? '')).toMatchObject({
    response: { status: 'failed', error: { code: 'draining' } },
  })
  expect(whole.indexOf('event: error\n')).toBeLessThan(whole.indexOf('event: response.failed\n'))
  expect(whole).toEndWith('data: [DONE]\n\n')
  expect(await gateway.exited).toBe(0)
})

test('an idle gateway exits despite a long grace period and an open connection', async () => {
  // Longer than this test may take.
  const gateway = await startGatewayProcess({ environment: { SLUICE_DRAIN_MS: '3600000' } })
  const kept = connect(gateway.port(), '127.0.0.1')
  kept.write('GET /readyz HTTP/1.1\r\nHost: gateway\r\n\r\n')
  await new Promise((resolve) => kept.once('data', resolve))
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
  expect(gateway.log().at(-1)).toMatchObject({ message: 'stopped' })
  kept.destroy()
})

test('a gateway stopped during its start exits cleanly and starts again', async () => {
  const dataFolder = temporaryFolder()
  const first = await launchGateway({ dataFolder })
  await first.logged('creating the embedded database')
  first.signal('SIGTERM')
  expect(await first.exited).toBe(0)
  expect(first.stderr()).toBe('')
  const second = await startGatewayProcess({ dataFolder })
  expect((await second.request('/v1/models')).status).toBe(200)
})

test('a second signal kills immediately', async () => {
  const gateway = await startGatewayProcess({ environment: { SLUICE_DRAIN_MS: '3600000' } })
  const events = await openStream(gateway, { model: 'demo-long', input: 'count' })
  const [worker = 0] = childrenOf(gateway.pid)
  gateway.signal('SIGTERM')
  await gateway.logged('stopping')
  // Signals that come close together count as one, so it is repeated, as an impatient person does.
  const impatience = setInterval(() => gateway.signal('SIGTERM'), 300)
  try {
    expect(await gateway.exited).toBe(1)
  } finally {
    clearInterval(impatience)
  }
  expect(isAlive(worker)).toBe(false)
  await expect(events.whole()).rejects.toThrow()
})

test('a generated but unread response is kept for its reader', async () => {
  const gateway = await startGatewayProcess({ environment: { SLUICE_DRAIN_MS: '3600000' } })
  const answering = await askWithoutReading(gateway, {
    model: 'demo-fast',
    input: hugePrompt,
    store: false,
  })
  await gateway.logged('request ended')
  gateway.signal('SIGTERM')
  expect(await gateway.logged('stopping')).toMatchObject({ running: 1 })
  const answer = await answering.readToEnd()
  const bodyStart = answer.indexOf('\r\n\r\n') + 4
  const length = Number(
    /^content-length: (\d+)/im.exec(answer.toString('latin1', 0, bodyStart))?.[1],
  )
  expect(length).toBeGreaterThan(hugePrompt.length * 6)
  expect(answer.length - bodyStart).toBe(length)
  expect(await gateway.exited).toBe(0)
})

test('a slow reader receives a finished stream to its last byte', async () => {
  const gateway = await startGatewayProcess({ environment: { SLUICE_DRAIN_MS: '3600000' } })
  const answering = await askWithoutReading(gateway, {
    model: 'demo-fast',
    input: hugePrompt,
    store: false,
    stream: true,
  })
  gateway.signal('SIGTERM')
  expect(await gateway.logged('stopping')).toMatchObject({ running: 1 })
  const answer = await answering.readToEnd()
  expect(answer.length).toBeGreaterThan(hugePrompt.length * 6)
  expect(answer.subarray(-200).toString()).toContain('data: [DONE]\n\n\r\n0\r\n\r\n')
  expect(await gateway.exited).toBe(0)
})

test('a reader that never reads does not keep the process alive beyond the grace period', async () => {
  const gateway = await startGatewayProcess({ environment: { SLUICE_DRAIN_MS: '200' } })
  const answering = await askWithoutReading(gateway, {
    model: 'demo-fast',
    input: hugePrompt,
    store: false,
    stream: true,
  })
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
  expect((await answering.readToEnd()).toString()).not.toContain('[DONE]')
})

test('requests that a stalled worker had not read at SIGTERM are answered', async () => {
  const gateway = await startGatewayProcess()
  const [worker = 0] = childrenOf(gateway.pid)
  process.kill(worker, 'SIGSTOP')
  const request = 'GET /livez HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n'
  const sockets = await Promise.all(
    Array.from({ length: 5 }, () => openSocket(gateway.port(), request)),
  )
  const answers = sockets.map(async (socket) => {
    let text = ''
    socket.on('data', (piece: Buffer) => {
      text += piece
    })
    await new Promise((resolve) => socket.on('close', resolve))
    return text.split('\r\n', 1)[0]
  })
  // As the supervisor does. It may notice a signal late while the state of its child changes.
  process.kill(worker, 'SIGTERM')
  process.kill(worker, 'SIGCONT')
  expect(await Promise.all(answers)).toEqual(Array(5).fill('HTTP/1.1 200 OK'))
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
})
