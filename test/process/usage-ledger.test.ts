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

test('the ledger is that of the upstream after a worker was killed, but for its last second', async () => {
  const upstream = startCountingUpstream()
  try {
    const gateway = await startGatewayProcess({
      environment: {
        SLUICE_CONFIG: configFile(upstream.config),
        SLUICE_WORKERS: String(workers),
      },
    })
    if (workers > 1) await gateway.logged('listening', workers)
    const hot = await createKey(gateway, 'hot')
    const cold = await createKey(gateway, 'cold')
    let isRunning = true
    const run = async (key: Key, word: string, pauseMs: number) => {
      while (isRunning) {
        await send(gateway, key, word)
        await Bun.sleep(pauseMs)
      }
    }
    const clients = [...Array.from({ length: 4 }, () => run(hot, 'hot', 1)), run(cold, 'cold', 40)]
    const startedAt = performance.now()
    await eventually('there is traffic for longer than may be lost', () => {
      return performance.now() - startedAt > 2 * lostMs && upstream.count('cold') > 20
    })
    const killedAt = performance.now()
    killProcess(childrenOf(gateway.pid)[0])
    await gateway.logged('listening', workers + 1)
    const coldBefore = upstream.count('cold')
    await eventually('traffic continues', () => upstream.count('cold') > coldBefore + 20)
    isRunning = false
    await Promise.all(clients)

    for (const [word, key] of [
      ['hot', hot],
      ['cold', cold],
    ] as const) {
      const served = upstream.count(word)
      const losable = upstream.count(word, killedAt - lostMs, killedAt + inFlightMs)
      expect(losable).toBeLessThan(served / 2)
      let ledger = await readLedger(gateway, key)
      await eventually(`the ledger of ${word} is complete`, async () => {
        ledger = await readLedger(gateway, key)
        return ledger.calls >= served - losable
      })
      // Nothing is counted twice.
      expect(ledger.calls).toBeLessThanOrEqual(served)
      expect(ledger.inputTokens).toBe(ledger.requests * usage.prompt_tokens)
    }
  } finally {
    await stopProcesses()
    await upstream.stop()
  }
})

test('a gateway that is stopped loses nothing', async () => {
  const upstream = startCountingUpstream()
  const place = await createTestPlace()
  try {
    const { dataFolder, databaseUrl } = place
    const environment = {
      SLUICE_CONFIG: configFile(upstream.config),
      SLUICE_WORKERS: String(workers),
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    }
    const first = await startGatewayProcess({ dataFolder, environment })
    if (workers > 1) await first.logged('listening', workers)
    const key = await createKey(first, 'last')
    await Promise.all(Array.from({ length: 40 }, () => send(first, key, 'last')))
    expect(upstream.count('last')).toBe(40)
    first.signal('SIGTERM')
    expect(await first.exited).toBe(0)
    const second = await startGatewayProcess({ dataFolder, environment })
    expect(await readLedger(second, key)).toMatchObject({ calls: 40, inputTokens: 280 })
  } finally {
    await stopProcesses()
    await upstream.stop()
    await place.remove()
  }
})
