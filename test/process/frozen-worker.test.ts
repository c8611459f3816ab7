import { afterEach, expect, test } from 'bun:test'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { type HeldUpstream, startHeldUpstream } from '#test/support/held-upstream.ts'
import {
  childrenOf,
  type GatewayProcess,
  killProcess,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { checkStream, readFrames, readOpenFrames } from '#test/support/response-frames.ts'

let place: TestPlace | undefined
let upstream: HeldUpstream | undefined

afterEach(async () => {
  await stopProcesses()
  await upstream?.stop()
  await place?.remove()
})

/** An upstream, and a function that starts replicas on one database. */
async function prepareReplicas(settings: string) {
  const held = await startHeldUpstream(settings)
  const shared = await createTestPlace()
  upstream = held
  place = shared
  const environment = { SLUICE_CONFIG: held.configFile, DATABASE_URL: shared.databaseUrl ?? '' }
  const startReplica = () => startGatewayProcess({ dataFolder: shared.dataFolder, environment })
  return { held, startReplica }
}

const ask = { model: 'held', input: 'hello' }

async function startStream(gateway: GatewayProcess) {
  const events = readEvents(await gateway.ask({ ...ask, stream: true }))
  await events.until(/output_text\.delta[\s\S]*\n\n/)
  const [first] = readOpenFrames(events.text())
  return { id: String(Object(first?.['response'])['id']), events }
}

async function find(gateway: GatewayProcess, id: string) {
  return Object(await (await gateway.request(`/v1/responses/${id}`)).json())
}

async function replay(gateway: GatewayProcess, id: string): Promise<string> {
  return (await gateway.request(`/v1/responses/${id}?stream=true`)).text()
}

function signalWorker(gateway: GatewayProcess, signal: NodeJS.Signals): void {
  killProcess(childrenOf(gateway.pid)[0], signal)
}

test.skipIf(serverUrl === undefined)(
  'a frozen worker keeps its responses and completes them; those of a killed worker are ended meanwhile',
  async () => {
    const { held, startReplica } = await prepareReplicas('[responses]\nlost_after_ms = 600\n')
    const frozen = await startReplica()
    const streamed = await startStream(frozen)
    const whole = frozen.ask(ask)
    const background = Object(await (await frozen.ask({ ...ask, background: true })).json())
    await eventually('all of its responses run', () => held.held() === 3)
    const [killed, observer] = [await startReplica(), await startReplica()]
    const lost = await startStream(killed)
    const status = async (id: string) => (await find(observer, id))['status']
    for (const id of [streamed.id, lost.id, background['id']]) {
      await eventually('it is stored', async () => (await status(id)) === 'in_progress')
    }

    signalWorker(frozen, 'SIGSTOP')
    signalWorker(killed, 'SIGKILL')
    await eventually('the killed one is ended', async () => (await status(lost.id)) === 'failed')
    expect((await find(observer, lost.id))['error']).toMatchObject({ code: 'worker_lost' })
    // It has been silent for longer than the killed one.
    expect(await status(streamed.id)).toBe('in_progress')
    expect(await status(background['id'])).toBe('in_progress')
    held.release()
    signalWorker(frozen, 'SIGCONT')

    const text = await streamed.events.whole()
    expect(checkStream(text).frames.at(-1)?.type).toBe('response.completed')
    expect(text).not.toContain('response_not_stored')
    expect(await replay(observer, streamed.id)).toBe(text)
    const answered = Object(await (await whole).json())
    expect(answered).toMatchObject({ status: 'completed', store: true })
    expect(await find(observer, answered['id'])).toEqual(answered)
    await eventually('the background response is over', async () => {
      return (await status(background['id'])) === 'completed'
    })
    for (const id of [streamed.id, background['id']]) {
      const { output } = await find(observer, id)
      expect(output).toMatchObject([{ content: [{ text: 'first second' }] }])
    }
  },
)

test.skipIf(serverUrl === undefined)(
  'a worker that is frozen for too long ends its streams as others have ended them',
  async () => {
    const settings = '[responses]\nlost_after_ms = 600\nfrozen_max_ms = 1500\n'
    const { startReplica } = await prepareReplicas(settings)
    const [frozen, observer] = [await startReplica(), await startReplica()]
    const { id, events } = await startStream(frozen)
    const status = async () => (await find(observer, id))['status']
    await eventually('it is stored', async () => (await status()) === 'in_progress')
    signalWorker(frozen, 'SIGSTOP')
    await eventually('it is ended', async () => (await status()) === 'failed')
    const replayed = readFrames(await replay(observer, id))
    signalWorker(frozen, 'SIGCONT')
    const live = readFrames(await events.whole())
    for (const frames of [live, replayed]) {
      expect(frames.map(({ type }) => type).slice(-2)).toEqual(['error', 'response.failed'])
      expect(Object(frames.at(-1)?.['response'])['error']).toMatchObject({ code: 'worker_lost' })
    }
    expect(await find(frozen, id)).toEqual(await find(observer, id))
  },
)
