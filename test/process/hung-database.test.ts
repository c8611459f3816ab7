import { afterEach, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { createTestPlace, serverUrl, type TestPlace } from '#test/support/database.ts'
import { readEvents } from '#test/support/event-reading.ts'
import { eventually } from '#test/support/eventually.ts'
import { type HeldUpstream, startHeldUpstream } from '#test/support/held-upstream.ts'
import {
  type GatewayProcess,
  signToken,
  startGatewayProcess,
  stopProcesses,
} from '#test/support/process.ts'
import { sendRaw } from '#test/support/raw-client.ts'
import { checkStream, readFrames, readOpenFrames } from '#test/support/response-frames.ts'
import { startTcpProxy, type TcpProxy } from '#test/support/tcp-proxy.ts'

let place: TestPlace | undefined
let upstream: HeldUpstream | undefined
let proxy: TcpProxy | undefined
let locking: SQL | undefined

afterEach(async () => {
  await stopProcesses()
  await upstream?.stop()
  await proxy?.stop()
  await locking?.close()
  await place?.remove()
})

type Hang = { begin(): Promise<void>; end(): Promise<void> }

/** Ways in which a database does not answer, without an error. */
const hangs: Record<string, (databaseUrl: string) => Hang> = {
  'forwards nothing': () => ({
    begin: async () => proxy?.freeze(),
    end: async () => proxy?.thaw(),
  }),
  'has a table locked': (databaseUrl) => {
    const connection = new SQL(databaseUrl, { max: 1 })
    locking = connection
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    let transaction: Promise<unknown> | undefined
    return {
      begin: () =>
        new Promise((resolve, reject) => {
          transaction = connection
            .begin(async (sql) => {
              await sql`lock table response, response_log in access exclusive mode`
              resolve()
              await ended
            })
            .catch(reject)
        }),
      async end() {
        end()
        await transaction
      },
    }
  },
}

const ask = { model: 'held', input: 'hello' }

async function prepare(
  settings: string,
  { queryMs = 500, words }: { queryMs?: number; words?: readonly string[] } = {},
) {
  const held = await startHeldUpstream(`[responses]\n${settings}`, words)
  const own = await createTestPlace()
  const url = new URL(own.databaseUrl ?? '')
  const through = await startTcpProxy({ host: url.hostname, port: Number(url.port || 5432) })
  ;[upstream, place, proxy] = [held, own, through]
  const proxied = new URL(url)
  proxied.port = String(through.port)
  const gateway = await startGatewayProcess({
    dataFolder: own.dataFolder,
    environment: {
      SLUICE_CONFIG: held.configFile,
      DATABASE_URL: String(proxied),
      SLUICE_DATABASE_WAIT_MS: String(queryMs),
    },
  })
  return { held, gateway, databaseUrl: String(url) }
}

async function startStream(gateway: GatewayProcess, more: object = {}) {
  const events = readEvents(await gateway.ask({ ...ask, ...more, stream: true }))
  await events.until(/output_text\.delta[\s\S]*\n\n/)
  const [first] = readOpenFrames(events.text())
  return { id: String(Object(first?.['response'])['id']), events }
}

/** The status of the response, or the code of the error. */
async function find(gateway: GatewayProcess, id: string): Promise<string> {
  const body = Object(await (await gateway.request(`/v1/responses/${id}`)).json())
  return body.error?.code ?? body.status
}

describe.skipIf(serverUrl === undefined)('a database that hangs in the middle of streams', () => {
  for (const [name, hangOf] of Object.entries(hangs)) {
    test(`and ${name} delays their end by the documented time, and not their output`, async () => {
      const { held, gateway, databaseUrl } = await prepare('store_wait_ms = 1500\n')
      const hang = hangOf(databaseUrl)
      const streams = [await startStream(gateway), await startStream(gateway, { background: true })]
      const whole = gateway.ask(ask)
      const queued = Object(await (await gateway.ask({ ...ask, background: true })).json())
      const ids = [...streams.map(({ id }) => id), String(queued.id)]
      await eventually('all run', () => held.held() === 4)
      for (const id of ids) {
        await eventually('it is stored', async () => (await find(gateway, id)) === 'in_progress')
      }

      await hang.begin()
      held.release()
      for (const { events } of streams) {
        // While the database hangs.
        await events.until(/data: \[DONE\]\n\n/)
        const text = events.text()
        expect(text).toContain('second')
        checkStream(text)
        const last = Object(readFrames(text).at(-1))
        expect(last).toMatchObject({
          type: 'response.completed',
          response: { status: 'completed', store: false },
          warning: { code: 'response_not_stored' },
        })
      }
      const answer = Object(await (await whole).json())
      expect(answer).toMatchObject({ status: 'completed', store: false })
      for (const id of [...ids, answer.id]) {
        expect(['response_not_stored', 'service_unavailable']).toContain(await find(gateway, id))
      }
      const during = Object(await (await gateway.ask({ ...ask, store: false })).json())
      expect(during).toMatchObject({ status: 'completed' })

      await hang.end()
      for (const id of [...ids, answer.id]) {
        await eventually(
          'the response is known as not stored',
          async () => (await find(gateway, id)) === 'response_not_stored',
        )
      }
      await eventually('responses are stored again', async () => {
        const next = Object(await (await gateway.ask(ask)).json())
        return next.store === true && (await find(gateway, next.id)) === 'completed'
      })
    })
  }

  test('delays a reader that is behind its response, and does not end its stream', async () => {
    const words = Array.from({ length: 250 }, (_, at) => `${at} ${'word '.repeat(8_000)}`)
    const { held, gateway, databaseUrl } = await prepare(
      'log_buffer_chars_max = 65536\nstore_wait_ms = 120000\n',
      { queryMs: 2_000, words },
    )
    const question = {
      port: gateway.port(),
      token: await signToken(),
      body: { ...ask, stream: true },
    }
    const reader = sendRaw(question, true)
    const observer = new SQL(databaseUrl, { max: 1 })
    locking = observer
    await eventually('all that the upstream has sent is stored', async () => {
      const [log] = await observer`select max(last) as last from response_log`
      return held.held() === 1 && log.last >= words.length
    })
    proxy?.freeze()
    reader.socket.resume()
    for (let times = 0; times < 2; times++) {
      // After the time that a query may take, so a read for the stream has failed too.
      expect(await find(gateway, 'resp_x')).toBe('service_unavailable')
    }
    proxy?.thaw()
    held.release()
    const text = await reader.body()
    checkStream(text)
    expect(text).toContain('"249 word')
    expect(Object(readFrames(text).at(-1))).toMatchObject({ type: 'response.completed' })
  })
})
