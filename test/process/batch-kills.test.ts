import { afterEach, expect, test } from 'bun:test'
import { createServer, type ServerResponse } from 'node:http'
import type postgres from 'postgres'
import { userIdOf } from '#auth/principal.ts'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { createTestPlace, serverUrl } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { listenOnLoopback } from '#test/support/loopback.ts'
import {
  configFile,
  type GatewayProcess,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { kill, send, startLocks } from './kills.ts'

/** A batch whose processes are killed at each of its steps. */

afterEach(stopProcesses)

const json = { 'content-type': 'application/json' }
const names = ['one', 'two', 'three', 'four', 'held-five', 'held-six']

/** Counts the requests per batch line, and delays some of them on demand. */
async function startCountingUpstream() {
  const asked = new Map<string, number>()
  const held = new Set<ServerResponse>()
  const state = { isHolding: true }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    if (request.method !== 'POST') return void response.writeHead(404).end()
    const name = names.find((one) => body.includes(`"${one}"`)) ?? ''
    asked.set(name, (asked.get(name) ?? 0) + 1)
    response.on('close', () => held.delete(response))
    if (state.isHolding && name.startsWith('held')) return void held.add(response)
    const message = { role: 'assistant', content: `answer ${name}` }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
    response.writeHead(200, json).end(JSON.stringify({ choices, usage }))
  })
  const { port, stop } = await listenOnLoopback(server)
  return {
    settings: `[[upstream]]\nname = "counting"\nurl = "http://127.0.0.1:${port}/v1"\nmodels = ["m"]\n`,
    asked: () => names.map((name) => asked.get(name) ?? 0),
    held: () => held.size,
    state,
    stop,
  }
}

async function createBatch(gateway: GatewayProcess): Promise<string> {
  const lines = names.map((name) => {
    const body = { model: 'm', input: name, store: false }
    return JSON.stringify({ custom_id: name, method: 'POST', url: '/v1/responses', body })
  })
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new File([lines.join('\n')], 'lines.jsonl'))
  const file = asRecord(await (await send(gateway, 'POST /v1/files', form)).json())
  const created = await send(gateway, 'POST /v1/batches', {
    input_file_id: file['id'],
    endpoint: '/v1/responses',
    completion_window: '24h',
  })
  return String(asRecord(await created.json())['id'])
}

async function read(gateway: GatewayProcess, id: string): Promise<JsonObject> {
  return asRecord(await (await send(gateway, `GET /v1/batches/${id}`)).json())
}

const completedOf = (batch: JsonObject) => asRecord(batch['request_counts'])['completed']

const lockLines = (on: postgres.TransactionSql) =>
  on`lock table batch_line in share row exclusive mode`
const lockFiles = (on: postgres.TransactionSql) =>
  on`select pg_advisory_xact_lock(hashtextextended(${`files of ${userIdOf('tester')}`}::text, 0))`

test('a batch answers every line exactly once though its processes are killed at each step', async () => {
  const upstream = await startCountingUpstream()
  const place = await createTestPlace()
  const locks = await startLocks(place.databaseUrl)
  const config = configFile(`${upstream.settings}[batches]\nper_batch_max = 6\n`)
  const start = () =>
    startGatewayProcess({
      dataFolder: place.dataFolder,
      environment: {
        SLUICE_CONFIG: config,
        SLUICE_WORKERS: serverUrl === undefined ? '1' : '2',
        ...(place.databaseUrl === undefined ? {} : { DATABASE_URL: place.databaseUrl }),
      },
    })
  try {
    await locks?.hold(lockLines)
    let gateway = await start()
    const id = await createBatch(gateway)
    if (locks !== null) {
      // Validating: its lines are being added.
      await locks.awaited()
      expect((await read(gateway, id))['status']).toBe('validating')
      await kill(gateway, place)
      await locks.release()
      expect(upstream.asked()).toEqual([0, 0, 0, 0, 0, 0])
      gateway = await start()
    }

    // In flight: four are answered, two are not.
    await eventually('two requests are held', () => upstream.held() === 2)
    await eventually('four are recorded', async () => completedOf(await read(gateway, id)) === 4)
    expect(upstream.asked()).toEqual([1, 1, 1, 1, 1, 1])
    await kill(gateway, place)

    upstream.state.isHolding = false
    if (locks !== null) {
      // Answered, but not recorded yet.
      await locks.hold(lockLines)
      gateway = await start()
      await locks.awaited()
      await eventually('both are answered', () => upstream.asked().slice(4).join() === '2,2')
      await kill(gateway, place)
      await locks.release()

      // Finalizing: the content of the output is stored, and its file is not created yet.
      await locks.hold(lockFiles)
      gateway = await start()
      await locks.awaited()
      const batch = await read(gateway, id)
      expect([batch['status'], completedOf(batch)]).toEqual(['finalizing', 6])
      await kill(gateway, place)
      await locks.release()
    }
    gateway = await start()
    await eventually(
      'it completes',
      async () => (await read(gateway, id))['status'] === 'completed',
    )

    const again = locks === null ? 2 : 3
    expect(upstream.asked()).toEqual([1, 1, 1, 1, again, again])
    const batch = await read(gateway, id)
    expect(batch['request_counts']).toEqual({ total: 6, completed: 6, failed: 0 })
    expect(asRecord(batch['usage'])['total_tokens']).toBe(60)
    expect(batch['error_file_id']).toBeNull()
    const output = await send(gateway, `GET /v1/files/${batch['output_file_id']}/content`)
    const lines = (await output.text()).trimEnd().split('\n').map(parseJson).map(asRecord)
    expect(lines.map((line) => line['custom_id'])).toEqual(names)
    const files = asRecord(await (await send(gateway, 'GET /v1/files?purpose=batch_output')).json())
    expect(files['data']).toHaveLength(1)
  } finally {
    await locks?.close()
    await stopProcesses()
    await upstream.stop()
    await place.remove()
  }
})
