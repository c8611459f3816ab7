import { afterEach, expect, test } from 'bun:test'
import { createEmbeddedPlace, serverUrl } from '#test/support/database.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { startHeldUpstream } from '#test/support/held-upstream.ts'
import {
  childrenOf,
  isAlive,
  killProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { openConnections, type ServedConnection } from '#test/support/served-connection.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'

afterEach(stopProcesses)

test('a killed worker is restarted on the same port and serves', async () => {
  const gateway = await startGatewayProcess()
  const { port } = gateway
  const firstPort = port()
  const [killed] = childrenOf(gateway.pid)
  killProcess(killed)
  const line = await gateway.logged('worker exited, restarting')
  expect(line).toMatchObject({ level: 'error', signal: 'SIGKILL' })
  await gateway.logged('listening', 2)
  expect(port()).toBe(firstPort)
  expect(childrenOf(gateway.pid)).not.toContain(killed)
  const answer = await gateway.ask({ model: 'demo-fast', input: 'still there?', stream: true })
  expect(await readEvents(answer).whole()).toEndWith('data: [DONE]\n\n')
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
})

test('a worker does not outlive its supervisor, and releases the data folder', async () => {
  const place = await createEmbeddedPlace()
  try {
    const first = await startGatewayProcess({ dataFolder: place.dataFolder })
    const [worker = 0] = childrenOf(first.pid)
    first.signal('SIGKILL')
    await first.exited
    await eventually('the worker ends', () => !isAlive(worker))
    const second = await startGatewayProcess({ dataFolder: place.dataFolder })
    expect((await second.request('/v1/models')).status).toBe(200)
  } finally {
    await stopProcesses()
    await place.remove()
  }
})

test('a worker without a supervisor finishes its streams', async () => {
  const gateway = await startGatewayProcess()
  const answer = await gateway.ask({ model: 'demo', input: 'to the end', stream: true })
  const events = readEvents(answer)
  await events.until(/output_text\.delta/)
  gateway.signal('SIGKILL')
  expect(await events.whole()).toEndWith('data: [DONE]\n\n')
  await gateway.exited
})

test.skipIf(serverUrl === undefined)(
  'two workers on one PostgreSQL both serve, and a key revoked on one is refused on both',
  async () => {
    const gateway = await startGatewayProcess({ environment: { SLUICE_WORKERS: '2' } })
    await gateway.logged('listening', 2)
    const workers = childrenOf(gateway.pid)
    expect(workers).toHaveLength(2)
    const connections = await openConnections(gateway.port(), workers)
    const [left, right] = connections
    const token = { authorization: `Bearer ${await signToken()}` }

    const created = await left.exchange('POST', '/v1/api-keys', token, '{"name":"shared"}')
    expect(created.status).toBe(200)
    const { id, key } = JSON.parse(created.body)
    const statuses = () =>
      Promise.all(
        connections.map(async (connection: ServedConnection) => {
          const answer = await connection.exchange('GET', '/v1/models', { 'x-api-key': key })
          return answer.status
        }),
      )
    expect(await statuses()).toEqual([200, 200])
    expect((await left.exchange('DELETE', `/v1/api-keys/${id}`, token)).status).toBe(200)
    expect((await left.exchange('GET', '/v1/models', { 'x-api-key': key })).status).toBe(401)
    let last: number[] = []
    const givesUpAt = performance.now() + helperTimeoutMs
    while (last.join() !== '401,401' && performance.now() < givesUpAt) last = await statuses()
    expect(last).toEqual([401, 401])

    killProcess(right.workerPid)
    await gateway.logged('listening', 3)
    expect((await left.exchange('GET', '/v1/models', token)).status).toBe(200)
    gateway.signal('SIGTERM')
    expect(await gateway.exited).toBe(0)
  },
)

test.skipIf(serverUrl === undefined)(
  'a second gateway cannot listen on the port that workers share',
  async () => {
    const first = await startGatewayProcess({ environment: { SLUICE_WORKERS: '2' } })
    const second = startGatewayProcess({
      environment: { SLUICE_WORKERS: '2', PORT: String(first.port()) },
    })
    await expect(second).rejects.toThrow('it is in use by another process')
  },
)

test.skipIf(serverUrl === undefined)(
  'one of two workers with streams is killed: streams of the other finish, and a new worker serves',
  async () => {
    const upstream = await startHeldUpstream()
    try {
      const environment = { SLUICE_WORKERS: '2', SLUICE_CONFIG: upstream.configFile }
      const gateway = await startGatewayProcess({ environment })
      await gateway.logged('listening', 2)
      const before = childrenOf(gateway.pid)
      const [left, right] = await openConnections(gateway.port(), before)
      const token = { authorization: `Bearer ${await signToken()}` }
      const body = JSON.stringify({ model: 'held', input: 'hello', stream: true })
      const [lasting, ending] = [left, right].map((connection) =>
        connection.readToEnd('/v1/responses', token, body),
      )
      await eventually('both have a stream', () => upstream.held() === 2)

      killProcess(right.workerPid)
      expect(await ending).not.toContain('data: [DONE]')
      await gateway.logged('listening', 3)
      upstream.release()
      const whole = await lasting
      expect(whole).toContain('event: response.completed')
      expect(whole).toEndWith('data: [DONE]\n\n\r\n0\r\n\r\n')

      const after = childrenOf(gateway.pid)
      expect(after).toContain(left.workerPid)
      expect(after).not.toContain(right.workerPid)
      for (const connection of await openConnections(gateway.port(), after)) {
        expect(await connection.readToEnd('/v1/responses', token, body)).toContain('data: [DONE]')
      }
      expect(
        gateway.log().filter(({ message }) => message === 'worker exited, restarting'),
      ).toHaveLength(1)
    } finally {
      await stopProcesses()
      await upstream.stop()
    }
  },
)
