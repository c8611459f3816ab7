import { afterEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  childrenOf,
  configFile,
  type GatewayProcess,
  inheritedEnvironment,
  residentBytes,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { openSocket } from '#test/support/raw-exchange.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import type { CrowdReport } from '#test/support/stream-crowd.ts'

afterEach(stopProcesses)

/** Many times what sockets and buffers on the way hold. */
const floodBytes = 48 * 1024 * 1024
/** Also more than they hold, and each token of it is stored. */
const storedFloodBytes = 8 * 1024 * 1024
const pieceBytes = 64 * 1024
/** The memory that all stalled readers may use; they requested many times that. */
const growthBytesMax = 64 * 1024 * 1024
/** The upstream counts as paused when nothing was sent for this long. */
const standstillMs = 1_000

/** An upstream that sends as much as the gateway reads, up to so many bytes. */
function startFlood(bytes: number): Promise<ReplayUpstream> {
  const chunk = (delta: object, reason: string | null) =>
    `data: ${JSON.stringify({
      id: 'flood',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason: reason }],
    })}\n\n`
  // As small as tokens are, because the text itself is rightly kept: the end of a stream repeats it.
  const delta = chunk({ content: 'word ' }, null)
  const body = Buffer.concat([
    Buffer.alloc(Math.ceil(bytes / delta.length) * delta.length, delta),
    Buffer.from(`${chunk({}, 'stop')}data: [DONE]\n\n`),
  ])
  const pieces = Math.floor(body.length / pieceBytes)
  const cutsAt = Array.from({ length: pieces }, (_, index) => (index + 1) * pieceBytes)
  return startReplayUpstream({ body, cutsAt })
}

async function startWithFlood(upstream: ReplayUpstream): Promise<GatewayProcess> {
  const file = configFile(
    `[[upstream]]
name = "flood"
url = "${upstream.baseUrl}"
api = "chat"
models = ["flood"]

[[upstream]]
name = "demo"
api = "demo"
`,
  )
  return startGatewayProcess({ environment: { SLUICE_CONFIG: file } })
}

async function untilStandstill(count: () => number): Promise<void> {
  for (let before = -1; before !== count(); await Bun.sleep(standstillMs)) before = count()
}

/** The test's own timeout is the limit. */
async function untilMoreThan(bytes: number, count: () => number): Promise<void> {
  while (count() <= bytes) await Bun.sleep(standstillMs)
}

test.each([
  [false, 'hold their upstreams back, cost little memory', 10],
  [true, 'hold nothing up', 3],
])(
  'stalled readers (store: %j) %s and affect no other client',
  async (store, _, stalledReaders) => {
    const bytes = store ? storedFloodBytes : floodBytes
    const upstream = await startFlood(bytes)
    try {
      const gateway = await startWithFlood(upstream)
      const [worker = 0] = childrenOf(gateway.pid)
      const ask = { model: 'flood', input: 'go on', stream: true, store }
      // What a whole answer costs once is no matter of the stalled ones.
      expect(await readEvents(await gateway.ask(ask)).whole()).toEndWith('data: [DONE]\n\n')
      const before = { resident: residentBytes(worker), sent: upstream.bodyBytesSent() }

      const body = JSON.stringify(ask)
      const request =
        `POST /v1/responses HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${await signToken()}\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`
      const sockets = await Promise.all(
        Array.from({ length: stalledReaders }, () => openSocket(gateway.port(), request)),
      )
      for (const socket of sockets) socket.pause()
      await upstream.until(({ requests }) => requests.length > stalledReaders)
      const sent = () => upstream.bodyBytesSent() - before.sent
      // What is stored runs at its own pace: its frames wait in the database.
      if (store) await untilMoreThan(stalledReaders * bytes, sent)
      else await untilStandstill(sent)
      const other = await gateway.ask({ model: 'demo', input: 'and me?', stream: true })
      expect(await readEvents(other).whole()).toEndWith('data: [DONE]\n\n')

      if (!store) {
        expect(sent()).toBeLessThan((stalledReaders * bytes) / 2)
        // A busy machine collects garbage later.
        const grownBytes = () => residentBytes(worker) - before.resident
        await eventually('little memory is held', () => grownBytes() < growthBytesMax)
      }
      for (const socket of sockets) socket.destroy()
      await upstream.until(({ connections }) => connections.open === 0)
      await gateway.logged('request ended', stalledReaders + 2)
    } finally {
      await stopProcesses()
      await upstream.stop()
    }
  },
)

test('one worker serves a thousand concurrent streams', async () => {
  const gateway = await startGatewayProcess()
  const crowd = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, '../support/stream-crowd.ts'),
      String(gateway.port()),
      await signToken(),
      'demo-long',
      '1000',
    ],
    { env: inheritedEnvironment(), stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const report: CrowdReport = JSON.parse(await new Response(crowd.stdout).text())
  expect(report).toEqual({ served: 1000, statuses: { 'HTTP/1.1 200 OK': 1000 }, ended: 0 })
  // All have left: nothing is running any more, so nothing holds the stop up.
  await gateway.logged('request ended', 1000)
  gateway.signal('SIGTERM')
  expect(await gateway.logged('stopping')).toMatchObject({ running: 0 })
  expect(await gateway.exited).toBe(0)
})
