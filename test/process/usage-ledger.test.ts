import { afterEach, expect, test } from 'bun:test'
import { createTestPlace, serverUrl } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  childrenOf,
  configFile,
  type GatewayProcess,
  killProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'

afterEach(stopProcesses)

/** The embedded database serves one process. */
const workers = serverUrl === undefined ? 1 : 2
/** What a killed worker may lose: the requests of its last second. */
const lostMs = 1_000
/** Several times that, so that a worker that never writes would be noticed. */
const trafficMs = 5_000
/** How long after the kill the upstream may read a request of the killed worker. */
const inFlightMs = 100
const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }

/** A chat upstream that counts its requests by the first word of their prompts. */
function startCountingUpstream() {
  const served: { word: string; atMs: number }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST') return Response.json({ data: [] })
      const { messages } = Object(await request.json())
      const [word = ''] = String(messages.at(-1).content).split(' ')
      served.push({ word, atMs: performance.now() })
      const message = { role: 'assistant', content: 'done' }
      return Response.json({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage })
    },
  })
  return {
    config: `[[upstream]]\nname = "counting"\nurl = "http://127.0.0.1:${server.port}/v1"\nmodels = ["m"]\n`,
    count: (word: string, sinceMs = 0, untilMs = Number.POSITIVE_INFINITY) =>
      served.filter((each) => each.word === word && each.atMs >= sinceMs && each.atMs < untilMs)
        .length,
    stop: () => server.stop(true),
  }
}

type Key = { readonly id: string; readonly key: string }

async function createKey(gateway: GatewayProcess, name: string): Promise<Key> {
  const created = await gateway.request('/v1/api-keys', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  })
  const { id, key } = Object(await created.json())
  return { id, key }
}

/** One request; a connection that a killed worker has broken is no failure. */
async function send(gateway: GatewayProcess, { key }: Key, word: string): Promise<void> {
  const body = JSON.stringify({ model: 'm', input: `${word} prompt`, store: false })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(`${gateway.url()}/v1/responses`, { method: 'POST', headers, body })
    .then((each) => each.text())
    .catch(() => null)
  if (response === null) await Bun.sleep(20)
}

/** The ledger's counts of a key. */
async function readLedger(gateway: GatewayProcess, { id }: Key) {
  const headers = { authorization: `Bearer ${await signToken(['admins'])}` }
  const answer = await gateway.request(`/v1/usage?group_by=key&key=${id}`, { headers })
  const { requests = 0, retries = 0, input_tokens = 0 } = Object(await answer.json()).data[0] ?? {}
  return { calls: Number(requests) + Number(retries), requests, inputTokens: input_tokens }
}

type Run = {
  upstream: ReturnType<typeof startCountingUpstream>
  start: () => Promise<GatewayProcess>
}

/** A gateway that can be started again on its database. */
async function withGateway(work: (run: Run) => Promise<void>): Promise<void> {
  const upstream = startCountingUpstream()
  const place = await createTestPlace()
  try {
    const { dataFolder, databaseUrl } = place
    const environment = {
      SLUICE_CONFIG: configFile(upstream.config),
      SLUICE_WORKERS: String(workers),
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    }
    await work({
      upstream,
      async start() {
        const gateway = await startGatewayProcess({ dataFolder, environment })
        await gateway.logged('listening', workers)
        return gateway
      },
    })
  } finally {
    await stopProcesses()
    await upstream.stop()
    await place.remove()
  }
}

/** A process that is stopped writes its records first. */
async function stop(gateway: GatewayProcess): Promise<void> {
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
}

test('the ledger is that of the upstream after a worker was killed, but for its last second', () =>
  withGateway(async ({ upstream, start }) => {
    const first = await start()
    const hot = await createKey(first, 'hot')
    const cold = await createKey(first, 'cold')
    let isRunning = true
    const run = async (key: Key, word: string, pauseMs: number) => {
      while (isRunning) {
        await send(first, key, word)
        await Bun.sleep(pauseMs)
      }
    }
    const clients = [...Array.from({ length: 4 }, () => run(hot, 'hot', 1)), run(cold, 'cold', 20)]
    const startedAt = performance.now()
    await eventually('there is traffic for longer than may be lost', () => {
      return performance.now() - startedAt > trafficMs && upstream.count('cold') > 40
    })
    const killedAt = performance.now()
    killProcess(childrenOf(first.pid)[0])
    await first.logged('listening', workers + 1)
    const coldBefore = upstream.count('cold')
    await eventually('traffic continues', () => upstream.count('cold') > coldBefore + 20)
    isRunning = false
    await Promise.all(clients)
    await stop(first)
    const second = await start()
    for (const [word, key] of [
      ['hot', hot],
      ['cold', cold],
    ] as const) {
      const served = upstream.count(word)
      const losable = upstream.count(word, killedAt - lostMs, killedAt + inFlightMs)
      const ledger = await readLedger(second, key)
      expect(ledger.calls).toBeGreaterThanOrEqual(served - losable)
      // Nothing is counted twice.
      expect(ledger.calls).toBeLessThanOrEqual(served)
      expect(ledger.inputTokens).toBe(ledger.requests * usage.prompt_tokens)
    }
  }))

test('a gateway that is stopped loses nothing', () =>
  withGateway(async ({ upstream, start }) => {
    const first = await start()
    const key = await createKey(first, 'last')
    await Promise.all(Array.from({ length: 40 }, () => send(first, key, 'last')))
    expect(upstream.count('last')).toBe(40)
    await stop(first)
    expect(await readLedger(await start(), key)).toMatchObject({ calls: 40, inputTokens: 280 })
  }))
