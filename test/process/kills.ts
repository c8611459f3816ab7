import { expect } from 'bun:test'
import { sql } from 'drizzle-orm'
import postgres from 'postgres'
import { openDatabase } from '#db/client.ts'
import type { JsonObject } from '#lib/json.ts'
import type { TestPlace } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { childrenOf, type GatewayProcess, killProcess } from '#test/support/process.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** Killing gateways at chosen steps of their work. */

const json = { 'content-type': 'application/json' }

/** Kills a whole gateway, and lets its leases expire at once. */
export async function kill(gateway: GatewayProcess, place: TestPlace): Promise<void> {
  for (const pid of [gateway.pid, ...childrenOf(gateway.pid)]) killProcess(pid)
  await gateway.exited
  const database = await openDatabase({ ...place, connectionsMax: 1, log: quietLog })
  await database.drizzle.execute(sql`update job set locked_until = now(), run_at = now()`)
  await database.close()
}

export async function send(
  gateway: GatewayProcess,
  operation: string,
  body?: FormData | JsonObject,
) {
  const [method = '', path = ''] = operation.split(' ')
  const isJson = body !== undefined && !(body instanceof FormData)
  const response = await gateway.request(path, {
    method,
    ...(isJson ? { headers: json, body: JSON.stringify(body) } : { body: body ?? null }),
  })
  expect(response.status, await response.clone().text()).toBeLessThan(300)
  return response
}

/** What only a server lets a test do: hold a lock that a step waits for. */
export async function startLocks(url: string | undefined) {
  if (url === undefined) return null
  const client = postgres(url, { max: 2, onnotice: () => {} })
  let release = () => {}
  let ended = Promise.resolve()
  const hold = (work: (transaction: postgres.TransactionSql) => Promise<unknown>) =>
    new Promise<void>((resolve) => {
      const released = new Promise<void>((unlock) => {
        release = unlock
      })
      ended = client
        .begin(async (transaction) => {
          await work(transaction)
          resolve()
          await released
        })
        .then(() => {})
    })
  return {
    /** Runs a statement that locks, and keeps its transaction open. */
    hold,
    /** Resolves when another connection waits for a lock. */
    awaited: () =>
      eventually('a step waits for a lock', async () => {
        const rows = await client`
          select 1 from pg_locks where not granted
            and (database = (select oid from pg_database where datname = current_database()))`
        return rows.length > 0
      }),
    async release() {
      release()
      await ended
    },
    close: () => client.end(),
  }
}
