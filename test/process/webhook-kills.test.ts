import { afterEach, expect, test } from 'bun:test'
import { createServer, type ServerResponse } from 'node:http'
import type postgres from 'postgres'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { createTestPlace } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { listenOnLoopback } from '#test/support/loopback.ts'
import {
  configFile,
  type GatewayProcess,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { kill, send, startLocks } from './kills.ts'

/** A webhook whose gateway is killed at each step of its delivery. */

afterEach(stopProcesses)

/** Holds requests until the test releases them. */
async function startReceiver() {
  const ids: string[] = []
  const held = new Set<ServerResponse>()
  const state = { isHolding: true }
  const server = createServer((request, response) => {
    request.resume()
    ids.push(String(request.headers['webhook-id']))
    if (!state.isHolding) return void response.writeHead(204).end()
    held.add(response)
    response.on('close', () => held.delete(response))
  })
  const { port, stop } = await listenOnLoopback(server)
  return {
    url: `http://127.0.0.1:${port}/hook`,
    ids: () => ids,
    held: () => held.size,
    state,
    stop,
  }
}

const lockDeliveries = (on: postgres.TransactionSql) =>
  on`lock table webhook_delivery in share row exclusive mode`

async function deliveriesOf(gateway: GatewayProcess, id: string): Promise<JsonObject[]> {
  const response = await send(gateway, `GET /v1/webhook_endpoints/${id}/deliveries`)
  return Object(await response.json()).data
}

test('an event is delivered with one id though its gateway is killed at each step', async () => {
  const receiver = await startReceiver()
  const place = await createTestPlace()
  const locks = await startLocks(place.databaseUrl)
  const config = configFile('[webhooks]\nprivate_hosts = ["127.0.0.1"]\n')
  const start = () =>
    startGatewayProcess({
      dataFolder: place.dataFolder,
      environment: {
        SLUICE_CONFIG: config,
        ...(place.databaseUrl === undefined ? {} : { DATABASE_URL: place.databaseUrl }),
      },
    })
  try {
    let gateway = await start()
    const created = await send(gateway, 'POST /v1/webhook_endpoints', {
      name: 'Hook',
      url: receiver.url,
      event_types: ['response.completed'],
    })
    const endpoint = String(asRecord(await created.json())['id'])
    await locks?.hold(lockDeliveries)
    const response = await send(gateway, 'POST /v1/responses', {
      model: 'demo-fast',
      input: 'hello',
      background: true,
    })
    const { id } = asRecord(await response.json())
    await eventually('the response ends', async () => {
      const read = await send(gateway, `GET /v1/responses/${id}`)
      return asRecord(await read.json())['status'] === 'completed'
    })
    if (locks !== null) {
      // Ended, and not announced yet.
      await locks.awaited()
      await kill(gateway, place)
      await locks.release()
      expect(receiver.ids()).toEqual([])
      gateway = await start()
    }

    // Sent, and not answered yet.
    await eventually('the receiver has it', () => receiver.held() === 1)
    await kill(gateway, place)
    receiver.state.isHolding = false
    let attempts = 2
    if (locks !== null) {
      // Answered, and not recorded yet.
      await locks.hold(lockDeliveries)
      gateway = await start()
      await eventually('it is sent again', () => receiver.ids().length === 2)
      await locks.awaited()
      await kill(gateway, place)
      await locks.release()
      attempts = 3
    }
    gateway = await start()
    await eventually('it is delivered', async () => {
      return (await deliveriesOf(gateway, endpoint))[0]?.['status'] === 'delivered'
    })
    expect(receiver.ids()).toHaveLength(attempts)
    expect(new Set(receiver.ids()).size).toBe(1)
    expect(await deliveriesOf(gateway, endpoint)).toHaveLength(1)
  } finally {
    await locks?.close()
    await stopProcesses()
    await receiver.stop()
    await place.remove()
  }
})
