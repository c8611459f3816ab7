import { afterEach, describe, expect, test } from 'bun:test'
import { type Database, openDatabase } from '#db/client.ts'
import { openTestDatabase, serverUrl, type TestDatabase } from '#test/support/database.ts'
import { eventually } from '#test/support/eventually.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { startTcpProxy } from '#test/support/tcp-proxy.ts'
import { outcome, type SettingsGateway, startSettingsGateway, valueAt } from './settings-gateway.ts'

const closings: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close()
})

async function start(database: Database): Promise<SettingsGateway> {
  const gateway = await startSettingsGateway(database)
  closings.push(gateway.stop)
  return gateway
}

/** A second connection to PostgreSQL; the embedded database has only one. */
async function connectAgain(database: TestDatabase, url = database.place.databaseUrl) {
  if (url === undefined) return database
  const { dataFolder } = database.place
  const again = await openDatabase({
    databaseUrl: url,
    dataFolder,
    connectionsMax: 2,
    log: quietLog,
  })
  closings.push(again.close)
  return again
}

async function openOwnDatabase(): Promise<TestDatabase> {
  const database = await openTestDatabase()
  closings.push(database.close)
  return database
}

describe('two processes on one database', () => {
  async function startTwo() {
    const database = await openOwnDatabase()
    return { here: await start(database), there: await start(await connectAgain(database)) }
  }

  test('a change in one takes effect in both', async () => {
    const { here, there } = await startTwo()
    for (const [k, [maker, other]] of [[5, [here, there]] as const, [6, [there, here]] as const]) {
      const made = await maker.patch({ retrieval_k: k })
      expect(maker.settings.current().retrieval_k).toBe(k)
      await eventually(
        'the other process has the change',
        () => other.settings.current().retrieval_k === k,
      )
      expect((await other.read()).etag).toBe(made.etag)
    }
  })

  test('one of two changes with the same tag is refused', async () => {
    const { here, there } = await startTwo()
    const { etag } = await here.read()
    const headers = { 'if-match': etag }
    const responses = await Promise.all([
      here.patch({ retrieval_k: 5 }, { headers }),
      there.patch({ retrieval_k: 6 }, { headers }),
    ])
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 412])
  })

  test('concurrent changes in both do not lose updates', async () => {
    const { here, there } = await startTwo()
    const patches = [1, 2].flatMap((at) => [
      here.patch({ files: { max_bytes: at } }),
      there.patch({ files: { trash_seconds: at } }),
      here.patch({ responses: { ttl_seconds: at } }),
      there.patch({ retrieval_k: at }),
    ])
    for (const response of await Promise.all(patches)) expect(outcome(response)).toBe('200')
    const history = await here.send('/v1/config/history?limit=100')
    const revisions: object[] = Object(history.body['data'])
    const newest = valueAt({ revisions }, 'revisions.0.after')
    // Each change is based on the previous one.
    for (const [index, later] of revisions.slice(0, -1).entries()) {
      expect(valueAt(later, 'before')).toEqual(valueAt(revisions[index + 1] ?? {}, 'after'))
    }
    expect(newest).toEqual({
      retrieval_k: expect.any(Number),
      files: { max_bytes: expect.any(Number), trash_seconds: expect.any(Number) },
      responses: { ttl_seconds: expect.any(Number) },
    })
    await eventually('both have the same state', async () => {
      const [one, other] = await Promise.all([here.read(), there.read()])
      return one.etag === other.etag
    })
  })
})

describe.skipIf(serverUrl === undefined)('a database server outage', () => {
  test('polls missed changes; until then the last known settings apply', async () => {
    const database = await openOwnDatabase()
    const direct = new URL(database.place.databaseUrl ?? '')
    const proxy = await startTcpProxy({ host: direct.hostname, port: Number(direct.port) })
    closings.push(proxy.stop)
    const indirect = new URL(direct)
    indirect.port = String(proxy.port)
    const here = await start(database)
    const behind = await start(await connectAgain(database, indirect.href))
    await here.patch({ retrieval_k: 5 })
    await eventually('the change was notified', () => behind.settings.current().retrieval_k === 5)

    await proxy.goDown()
    await here.patch({ retrieval_k: 6 })
    expect((await behind.read()).body['retrieval_k']).toBe(5)
    expect(outcome(await behind.patch({ retrieval_k: 7 }))).toBe('503 service_unavailable')

    await proxy.comeUp()
    await eventually('the change was polled', () => behind.settings.current().retrieval_k === 6)
  })
})
