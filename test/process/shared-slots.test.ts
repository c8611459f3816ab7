import { afterEach, expect, test } from 'bun:test'
import { serverUrl } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { type HeldUpstream, startHeldUpstream } from '#test/support/held-upstream.ts'
import {
  childrenOf,
  configFile,
  killProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { openConnections } from '#test/support/served-connection.ts'

let upstream: HeldUpstream | undefined
afterEach(async () => {
  await stopProcesses()
  await upstream?.stop()
})

test.skipIf(serverUrl === undefined)(
  'two workers divide the slots of an upstream, and a restarted worker has the share of the dead one',
  async () => {
    upstream = await startHeldUpstream()
    const { held } = upstream
    const SLUICE_CONFIG = configFile(
      `${await Bun.file(upstream.configFile).text()}max_in_flight = 3\n`,
    )
    const gateway = await startGatewayProcess({
      environment: { SLUICE_WORKERS: '2', SLUICE_CONFIG },
    })
    await gateway.logged('listening', 2)
    const token = { authorization: `Bearer ${await signToken()}` }
    const body = JSON.stringify({ model: 'held', input: 'hello', stream: true, store: false })
    /** Three streams for each worker. */
    const askBoth = async () => {
      const workers = childrenOf(gateway.pid)
      const connections = [1, 2, 3].map(() => openConnections(gateway.port(), workers))
      return (await Promise.all(connections)).flatMap(([left, right]) =>
        [left, right].map((connection) => connection.readToEnd('/v1/responses', token, body)),
      )
    }
    const streams = await askBoth()
    await eventually('every slot is in use', () => held() === 3)
    // Each further request would be visible here, since the workers have received all six.
    await eventually('the others wait', async () => (await waitingCalls(gateway.port(), token)) > 0)
    expect(held()).toBe(3)

    const [, second = 0] = childrenOf(gateway.pid)
    killProcess(second)
    await gateway.logged('listening', 3)
    const more = await askBoth()
    await eventually('every slot is in use again', () => held() === 3)
    upstream.release()
    const ended = await Promise.all([...streams, ...more])
    expect(
      ended.filter((text) => text.includes('response.completed')).length,
    ).toBeGreaterThanOrEqual(9)
  },
)

async function waitingCalls(port: number, headers: Record<string, string>): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text()
  const lines = text.split('\n').filter((line) => line.startsWith('sluice_queue_waiting{'))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

test.skipIf(serverUrl === undefined)(
  'fewer slots than workers are one each, with a warning',
  async () => {
    upstream = await startHeldUpstream()
    const settings = await Bun.file(upstream.configFile).text()
    const SLUICE_CONFIG = configFile(`${settings}max_in_flight = 1\n`)
    const environment = { SLUICE_WORKERS: '2', SLUICE_CONFIG }
    const gateway = await startGatewayProcess({ environment })
    await gateway.logged('listening', 2)
    const message = 'max_in_flight is less than the number of workers, each gets one'
    const warnings = gateway.log().filter((line) => line['message'] === message)
    expect(warnings).toMatchObject([
      { level: 'warn', upstream: 'held', max_in_flight: 1, workers: 2 },
    ])
  },
)
