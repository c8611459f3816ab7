import { afterEach, expect, test } from 'bun:test'
import { createEmbeddedPlace, createTestPlace, serverUrl } from '#test/support/database.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { startHeldUpstream } from '#test/support/held-upstream.ts'
import {
  childrenOf,
  configFile,
  type GatewayProcess,
  killProcess,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import {
  checkStream,
  type Frame,
  readFrames,
  readOpenFrames,
} from '#test/support/response-frames.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'

afterEach(stopProcesses)

/** The demo model emits about thirty words per second. */
const prompt = Array.from({ length: 90 }, (_, index) => `word${index}`).join(' ')

async function startStream(
  gateway: GatewayProcess,
  body: object = {},
  until = 'output_text.delta',
) {
  const answer = await gateway.ask({ model: 'demo', input: prompt, stream: true, ...body })
  expect(answer.status).toBe(200)
  const events = readEvents(answer)
  await events.until(new RegExp(`${RegExp.escape(until)}[\\s\\S]*\\n\\n`))
  return { id: idOf(readOpenFrames(events.text())), events }
}

function idOf(frames: readonly Frame[]): string {
  const [first] = frames
  const response = first?.['response']
  return String(Object(response)['id'])
}

async function readStream(gateway: GatewayProcess, id: string, startingAfter?: number) {
  const after = startingAfter === undefined ? '' : `&starting_after=${startingAfter}`
  const answer = await gateway.request(`/v1/responses/${id}?stream=true${after}`)
  expect(answer.status).toBe(200)
  return answer
}

async function find(gateway: GatewayProcess, id: string) {
  const answer = await gateway.request(`/v1/responses/${id}`)
  return { status: answer.status, body: Object(await answer.json()) }
}

async function killWorker(gateway: GatewayProcess): Promise<void> {
  killProcess(childrenOf(gateway.pid)[0])
  await gateway.logged('listening', 2)
}

/** However busy the database is, a response is stored before its stream begins. */
const storedFirst = `[responses]\nstore_wait_ms = ${helperTimeoutMs}\n`

/** Settings that allow one concurrent background response. */
const oneAtATime = '[responses]\nbackground_running_max = 1\n'

test('a killed worker leaves a failed response with every logged frame', async () => {
  const environment = { SLUICE_CONFIG: configFile(storedFirst) }
  const gateway = await startGatewayProcess({ environment })
  const { id, events } = await startStream(gateway)
  await events.until(/word30 [\s\S]*\n\n/)
  const seen = readOpenFrames(events.text())
  const late = Array.from({ length: 8 }, () => startStream(gateway, {}, 'response.created'))
  const announced = (await Promise.all(late)).map((stream) => stream.id)
  await killWorker(gateway)
  for (const other of announced) expect((await find(gateway, other)).status).toBe(200)
  await eventually('the response is over', async () => {
    const { status, body } = await find(gateway, id)
    expect(status).toBe(200)
    return body['status'] === 'failed'
  })
  const { body } = await find(gateway, id)
  expect(body['error']).toMatchObject({ code: 'worker_lost', type: 'server_error' })

  const replayed = readFrames(await (await readStream(gateway, id)).text())
  const endings = [
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'error',
    'response.failed',
  ]
  expect(replayed.slice(-endings.length).map(({ type }) => type)).toEqual(endings)
  const logged = replayed.slice(0, -endings.length)
  expect(logged.length).toBeGreaterThan(0)
  const common = Math.min(logged.length, seen.length)
  expect(logged.slice(0, common)).toEqual(seen.slice(0, common))

  const last = Number(seen.at(-1)?.['sequence_number'])
  const rest = readFrames(await (await readStream(gateway, id, last)).text())
  expect(rest.map(({ type }) => type).slice(-2)).toEqual(['error', 'response.failed'])
  for (const frame of rest) expect(Number(frame['sequence_number'])).toBeGreaterThan(last)
})

test('queued background work survives SIGKILL and then completes', async () => {
  const place = await createEmbeddedPlace()
  try {
    const environment = { SLUICE_CONFIG: configFile(oneAtATime) }
    const gateway = await startGatewayProcess({ dataFolder: place.dataFolder, environment })
    const ask = async (input: string) => {
      const answer = await gateway.ask({ model: 'demo', input, background: true })
      return Object(await answer.json())
    }
    const running = await ask(prompt)
    const waiting = await ask('the second one')
    expect([running['status'], waiting['status']]).toEqual(['queued', 'queued'])
    await eventually('the first one runs', async () => {
      return (await find(gateway, running['id'])).body['status'] === 'in_progress'
    })
    await killWorker(gateway)
    await eventually('both are over', async () => {
      const found = await Promise.all([running, waiting].map(({ id }) => find(gateway, id)))
      return found.every(({ body }) => ['failed', 'completed'].includes(body['status']))
    })
    expect((await find(gateway, waiting['id'])).body['status']).toBe('completed')
    await stopProcesses()
  } finally {
    await place.remove()
  }
})

test('a stopping process finishes the background response that runs and starts no other', async () => {
  const upstream = await startHeldUpstream(oneAtATime)
  try {
    const gateway = await startGatewayProcess({
      environment: { SLUICE_CONFIG: upstream.configFile, SLUICE_DRAIN_MS: '3600000' },
    })
    const ask = { model: 'held', input: 'hello' }
    await gateway.ask({ ...ask, background: true })
    await eventually('the first one runs', () => upstream.held() === 1)
    await gateway.ask({ ...ask, background: true })
    // It keeps the process from exiting.
    const streaming = gateway.ask({ ...ask, stream: true, store: false })
    await eventually('the stream has begun', () => upstream.held() === 2)
    gateway.signal('SIGTERM')
    await gateway.logged('stopping')
    upstream.releaseFirst()
    await gateway.logged('generation ended')
    // Without a stop of the queue, the second one would start now.
    await Bun.sleep(500)
    expect(upstream.held()).toBe(1)
    upstream.release()
    expect(await (await streaming).text()).toContain('response.completed')
    expect(await gateway.exited).toBe(0)
  } finally {
    await upstream.stop()
  }
})

test('a restart loses nothing: running work finishes, queued work runs after the restart', async () => {
  const place = await createTestPlace()
  const shared = {
    dataFolder: place.dataFolder,
    environment: place.databaseUrl === undefined ? {} : { DATABASE_URL: place.databaseUrl },
  }
  try {
    const first = await startGatewayProcess(shared)
    const running = Object(
      await (await first.ask({ model: 'demo', input: prompt, background: true })).json(),
    )
    await eventually('it runs', async () => {
      return (await find(first, running['id'])).body['status'] === 'in_progress'
    })
    const stored = Object(await (await first.ask({ model: 'demo-fast', input: 'kept' })).json())
    first.signal('SIGTERM')
    expect(await first.exited).toBe(0)

    const second = await startGatewayProcess(shared)
    expect((await find(second, running['id'])).body['status']).toBe('completed')
    expect((await find(second, stored['id'])).body).toEqual(stored)
    const { frames } = checkStream(await (await readStream(second, running['id'])).text())
    expect(frames.at(-1)?.type).toBe('response.completed')
    await stopProcesses()
  } finally {
    await place.remove()
  }
})

test.skipIf(serverUrl === undefined)(
  'one replica shows, resumes, continues, cancels and deletes what another replica runs',
  async () => {
    const place = await createTestPlace()
    const environment = { DATABASE_URL: place.databaseUrl ?? '' }
    const start = () => startGatewayProcess({ dataFolder: place.dataFolder, environment })
    try {
      const [left, right] = await Promise.all([start(), start()])
      const { id, events } = await startStream(left)
      const live = (await readStream(right, id)).text()
      const resumed = (await readStream(right, id, 10)).text()
      const whole = await events.whole()
      checkStream(whole)
      expect(await live).toBe(whole)
      const blocks = whole.split('\n\n')
      expect(await resumed).toBe(blocks.slice(11).join('\n\n'))
      expect((await find(right, id)).body).toEqual((await find(left, id)).body)

      const next = await right.ask({ model: 'demo', input: 'and on', previous_response_id: id })
      expect(next.status).toBe(200)

      const second = await startStream(left)
      const cancelled = await right.request(`/v1/responses/${second.id}/cancel`, { method: 'POST' })
      expect(Object(await cancelled.json())).toMatchObject({ id: second.id, status: 'cancelled' })
      expect(readFrames(await second.events.whole()).at(-1)?.type).toBe('response.incomplete')
      expect((await find(left, second.id)).body['status']).toBe('cancelled')

      const third = await startStream(left)
      const deleted = await right.request(`/v1/responses/${third.id}`, { method: 'DELETE' })
      expect(deleted.status).toBe(200)
      await third.events.whole()
      for (const gateway of [left, right]) expect((await find(gateway, third.id)).status).toBe(404)
      await stopProcesses()
    } finally {
      await place.remove()
    }
  },
)
