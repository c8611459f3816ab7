import { afterEach, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import {
  type GatewayProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { openSocket, readTurn, type SocketClient } from '#test/support/socket-client.ts'

/** WebSockets at shutdown. */
afterEach(stopProcesses)

/** The demo model emits about thirty words per second. */
const prompt = Array.from({ length: 60 }, (_, index) => `word${index}`).join(' ')

async function open(gateway: GatewayProcess): Promise<SocketClient> {
  const headers = { authorization: `Bearer ${await signToken()}` }
  return openSocket(gateway.port(), { headers })
}

function create(model: string, streamId: string, more: object = {}) {
  return { type: 'response.create', model, input: prompt, stream_id: streamId, ...more }
}

const textsOf = ({ texts }: SocketClient, streamId: string) =>
  texts.filter((text) => text.includes(`"stream_id":"${streamId}"`))

test.each([{ store: true }, { store: false }])(
  'SIGTERM lets a running response finish, refuses the next, and closes (store: $store)',
  async ({ store }) => {
    const gateway = await startGatewayProcess()
    const [idle, busy] = [await open(gateway), await open(gateway)]
    busy.send(create('demo', 'runs', { store }))
    await eventually('it has begun', () => textsOf(busy, 'runs').length > 4)
    gateway.signal('SIGTERM')
    await gateway.logged('stopping')
    busy.send(create('demo', 'late'))
    await eventually('the idle one is closed', idle.isClosed)
    expect(idle.closeCode()).toBe(1012)
    const late = await open(gateway)
    expect(late.head).toMatch(/^HTTP\/1\.1 503 /)

    await eventually('the busy one is closed', busy.isClosed)
    const { response } = await readTurn(textsOf(busy, 'runs'))
    expect(response).toMatchObject({ status: 'completed', store })
    expect(JSON.parse(textsOf(busy, 'late')[0] ?? '')).toMatchObject({
      type: 'error',
      status: 503,
      error: { code: 'draining' },
    })
    expect(busy.closeCode()).toBe(1012)
    expect(await gateway.exited).toBe(0)
  },
)

test('a response that outlasts the grace period ends with an error, and its socket closes cleanly', async () => {
  const gateway = await startGatewayProcess({ environment: { SLUICE_DRAIN_MS: '200' } })
  const client = await open(gateway)
  client.send(create('demo-long', 'runs', { store: false }))
  await eventually('it has begun', () => textsOf(client, 'runs').length > 4)
  gateway.signal('SIGTERM')
  await eventually('it is closed', client.isClosed)
  const { response } = await readTurn(textsOf(client, 'runs'))
  expect(response).toMatchObject({ status: 'failed', error: { code: 'draining' } })
  expect(client.closeCode()).toBe(1012)
  expect(await gateway.exited).toBe(0)
})
