import { afterEach, expect, test } from 'bun:test'
import { createEmbeddedPlace, serverUrl } from '#test/support/database.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { startHeldUpstream } from '#test/support/held-upstream.ts'
import {
  childrenOf,
  type GatewayProcess,
  isAlive,
  killProcess,
  launchGateway,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { openConnections, type ServedConnection } from '#test/support/served-connection.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'

afterEach(stopProcesses)

/** Its workers notice when they are continued. */
function killSupervisor(gateway: GatewayProcess): void {
  for (const worker of childrenOf(gateway.pid)) killProcess(worker, 'SIGSTOP')
  gateway.signal('SIGKILL')
}

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

test('a killed gateway is restarted at once: it waits for the folder until the last stream has ended', async () => {
  const place = await createEmbeddedPlace()
  const upstream = await startHeldUpstream()
  try {
    const { dataFolder } = place
    const environment = { SLUICE_CONFIG: upstream.configFile }
    const first = await startGatewayProcess({ dataFolder, environment })
    const [worker = 0] = childrenOf(first.pid)
    const events = readEvents(await first.ask({ model: 'held', input: 'hello', stream: true }))
    await events.until(/output_text\.delta/)
    killSupervisor(first)
    const second = await launchGateway({ dataFolder, environment })
    expect(await second.logged('data folder in use, waiting')).toMatchObject({ pid: worker })
    killProcess(worker, 'SIGCONT')
    upstream.release()
    expect(await events.whole()).toEndWith('data: [DONE]\n\n')
    await second.logged('listening')
    expect((await second.request('/v1/models')).status).toBe(200)
    await eventually('the worker ends', () => !isAlive(worker))
  } finally {
    await stopProcesses()
    await upstream.stop()
    await place.remove()
  }
})

test.skipIf(serverUrl === undefined)(
  'a killed gateway is restarted at once on its port, beside its last stream',
  async () => {
    const upstream = await startHeldUpstream()
    try {
      const environment = { SLUICE_WORKERS: '2', SLUICE_CONFIG: upstream.configFile }
      const first = await startGatewayProcess({ environment })
      await first.logged('listening', 2)
      const workers = childrenOf(first.pid)
      const events = readEvents(await first.ask({ model: 'held', input: 'hello', stream: true }))
      await events.until(/output_text\.delta/)
      killSupervisor(first)
      const again = { ...environment, PORT: String(first.port()) }
      const second = await launchGateway({ environment: again })
      await second.logged('port in use, waiting')
      for (const worker of workers) killProcess(worker, 'SIGCONT')
      await second.logged('listening')
      expect(second.port()).toBe(first.port())
      for (let request = 0; request < 10; request++) {
        expect((await second.request('/v1/models')).status).toBe(200)
      }
      upstream.release()
      expect(await events.whole()).toEndWith('data: [DONE]\n\n')
      await eventually('the workers end', () => !workers.some(isAlive))
    } finally {
      await stopProcesses()
      await upstream.stop()
    }
  },
)

test('a worker whose supervisor is killed while it starts ends', async () => {
  const place = await createEmbeddedPlace()
  try {
    const gateway = await launchGateway({ dataFolder: place.dataFolder })
    await eventually('the worker starts', () => childrenOf(gateway.pid).length > 0)
    const [worker = 0] = childrenOf(gateway.pid)
    gateway.signal('SIGKILL')
    await eventually('the worker ends', () => !isAlive(worker))
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
