import { afterEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { userIdOf } from '#auth/principal.ts'
import { openDatabase } from '#db/client.ts'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  childrenOf,
  configFile,
  type GatewayProcess,
  killProcess,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { startReplayUpstream } from '#test/support/replay-upstream.ts'

/** Budgets when workers and whole gateways are killed. */

afterEach(stopProcesses)

/** The embedded database serves one process. */
const workers = serverUrl === undefined ? 1 : 2
/** What a kill may lose: the use of the last second. */
const lostMs = 1_000
/** How long after a kill the upstream may read a request of the killed worker. */
const inFlightMs = 100
const trafficMs = 3_000
const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
const tokensPerCall = 10
/** One per token, so that money is tokens. */
const prices = '[prices.m]\ninput_per_million = 1_000_000\noutput_per_million = 1_000_000\n'
const nanosPerUnit = 1e9

async function startUpstream() {
  const servedAtMs: number[] = []
  const upstream = await startReplayUpstream(({ method }) => {
    const headers = { 'content-type': 'application/json' }
    if (method !== 'POST') return { headers, body: '{"data":[]}' }
    servedAtMs.push(performance.now())
    const message = { role: 'assistant', content: 'done' }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    return { headers, body: JSON.stringify({ choices, usage }) }
  })
  return {
    stop: upstream.stop,
    settings: (budgets: string) => `[[upstream]]
name = "counting"
url = "${upstream.baseUrl}"
models = ["m"]
${prices}[budgets.default]
${budgets}
`,
    served: () => servedAtMs.length,
    servedAround: (killedAtMs: number) =>
      servedAtMs.filter((at) => at >= killedAtMs - lostMs && at < killedAtMs + inFlightMs).length,
  }
}

const ask = (gateway: GatewayProcess) => gateway.ask({ model: 'm', input: 'Hi', store: false })

/** What the database has of the user: tokens and money of days and months. */
async function storedUse(place: TestPlace) {
  const database = await openDatabase({ ...place, connectionsMax: 1, log: quietLog })
  try {
    const rows: { period: string; tokens: number; cost: number }[] = [
      ...((await database.drizzle.execute(sql`
        select period, tokens::float8 as tokens, cost_nanos::float8 as cost from budget_use
        where owner = ${`user:${userIdOf('tester')}`}`)) as never),
    ]
    const sumOf = (chars: number) => {
      const found = rows.filter(({ period }) => period.length === chars)
      const sum = (read: (row: (typeof rows)[number]) => number) =>
        found.reduce((total, row) => total + read(row), 0)
      return { tokens: sum(({ tokens }) => tokens), cost: sum(({ cost }) => cost) / nanosPerUnit }
    }
    return { days: sumOf(10), months: sumOf(7) }
  } finally {
    await database.close()
  }
}

test('a kill loses at most a second of use, nothing counts twice, and used-up budgets still refuse', async () => {
  const upstream = await startUpstream()
  const place = await createTestPlace()
  const { dataFolder, databaseUrl } = place
  const start = async (budgets: string) => {
    const gateway = await startGatewayProcess({
      dataFolder,
      environment: {
        SLUICE_CONFIG: configFile(upstream.settings(budgets)),
        SLUICE_WORKERS: String(workers),
        ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
      },
    })
    await gateway.logged('listening', workers)
    return gateway
  }
  try {
    const first = await start('tokens_per_day = 1_000_000_000\ncost_per_month = 1_000_000_000')
    let isRunning = true
    const client = async () => {
      while (isRunning) {
        // A connection that a killed worker has broken is no failure.
        const response = await ask(first).catch(() => null)
        await response?.arrayBuffer().catch(() => null)
        await Bun.sleep(response === null ? 20 : 2)
      }
    }
    const clients = Array.from({ length: 4 }, client)
    const killedAtMs: number[] = []
    const trafficSince = async (sinceMs: number, served: number) => {
      await eventually('there is traffic for longer than may be lost', () => {
        return performance.now() - sinceMs > trafficMs && upstream.served() > served + 40
      })
    }
    await trafficSince(performance.now(), 0)
    killedAtMs.push(performance.now())
    killProcess(childrenOf(first.pid)[0])
    await first.logged('listening', workers + 1)
    await trafficSince(performance.now(), upstream.served())

    const running = childrenOf(first.pid)
    killedAtMs.push(performance.now())
    for (const pid of [first.pid, ...running]) killProcess(pid)
    isRunning = false
    await Promise.all(clients)
    await first.exited

    const { days, months } = await storedUse(place)
    const served = upstream.served() * tokensPerCall
    const lost = killedAtMs.reduce((sum, at) => sum + upstream.servedAround(at), 0) * tokensPerCall
    expect(lost).toBeLessThan(served / 2)
    expect(days).toEqual(months)
    expect(days.cost).toBe(days.tokens)
    expect(days.tokens).toBeLessThanOrEqual(served)
    expect(days.tokens).toBeGreaterThanOrEqual(served - lost)

    for (const budget of ['tokens_per_day', 'tokens_per_month', 'cost_per_day', 'cost_per_month']) {
      // One call more fits, on whichever worker, and its use is known to a restarted gateway.
      const { days: use } = await storedUse(place)
      const gateway = await start(`${budget} = ${use.tokens + 1}`)
      const before = upstream.served()
      expect((await ask(gateway)).status, budget).toBe(200)
      await stop(gateway)
      const again = await start(`${budget} = ${use.tokens + 1}`)
      for (let times = 0; times < 4; times++) {
        const refused = await ask(again)
        expect([refused.status, Object(await refused.json()).error.code], budget).toEqual([
          429,
          'budget_exceeded',
        ])
      }
      expect(upstream.served()).toBe(before + 1)
      await stop(again)
    }
  } finally {
    await stopProcesses()
    await upstream.stop()
    await place.remove()
  }
})

/** A process that is stopped writes its use first. */
async function stop(gateway: GatewayProcess): Promise<void> {
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
}
