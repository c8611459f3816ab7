import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createApiKey } from '#auth/key-format.ts'
import { type Database, openDatabase } from '#db/client.ts'
import { setRequestWait } from '#db/query-runner.ts'
import { openTestDatabase, serverUrl, type TestDatabase } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { startTcpProxy } from '#test/support/tcp-proxy.ts'
import { helperTimeoutMs } from '#test/support/time-limits.ts'
import { startWorld, type World } from './world.ts'

/** Long enough that no cache entry expires during these tests. */
const cacheMs = 3_600_000
const closings: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close()
})

async function openDatabaseForTest(): Promise<TestDatabase> {
  const database = await openTestDatabase()
  closings.push(database.close)
  return database
}

async function start(
  database: Database,
  settings: Parameters<typeof startWorld>[1] = { apiKeys: { cacheMs } },
): Promise<World> {
  const world = await startWorld(database, settings)
  closings.push(world.close)
  return world
}

/** A second connection to a server's database; the embedded one has only one. */
async function connectAgain(database: TestDatabase, url = database.place.databaseUrl) {
  if (url === undefined) return database
  const again = await openDatabase({
    databaseUrl: url,
    dataFolder: database.place.dataFolder,
    connectionsMax: 2,
    log: quietLog,
  })
  closings.push(again.close)
  return again
}

async function statusOf(world: World, bearer: string): Promise<number> {
  return (await world.send('/who', { bearer })).status
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(5)
}

describe('two replicas on one database', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await openTestDatabase()
  })
  afterAll(() => database.close())

  async function startTwo() {
    const here = await start(database)
    const there = await start(await connectAgain(database))
    return { here, there }
  }

  test('both refuse a key that one of them revoked', async () => {
    const { here, there } = await startTwo()
    const { id, key } = await here.makeKey('ann', ['users'])
    expect(await Promise.all([statusOf(here, key), statusOf(there, key)])).toEqual([200, 200])
    const bearer = here.token('ann', ['users'])
    await here.send(`/v1/api-keys/${id}`, { method: 'DELETE', bearer })
    expect(await statusOf(here, key)).toBe(401)
    await until(async () => (await statusOf(there, key)) === 401)
  })

  test('a key has the groups of its owner’s newest token', async () => {
    const { here, there } = await startTwo()
    const { key } = await here.makeKey('bob', ['users'])
    expect(await statusOf(there, key)).toBe(200)
    const nowS = Math.floor(here.now().getTime() / 1000)
    await here.send('/who', { bearer: here.token('bob', [], { iat: nowS + 1 }) })
    await until(async () => (await statusOf(there, key)) === 403)
    expect(await statusOf(here, key)).toBe(403)
    await there.send('/who', { bearer: here.token('bob', ['admins'], { iat: nowS + 2 }) })
    await until(async () => (await statusOf(here, key)) === 200)
    const answer = await here.send('/models', { bearer: key })
    expect(answer.status).toBe(200)
  })

  test('an older token does not restore groups', async () => {
    const { here, there } = await startTwo()
    const nowS = Math.floor(here.now().getTime() / 1000)
    const { key } = await here.makeKey('cleo', ['users'])
    await here.send('/who', { bearer: here.token('cleo', ['staff'], { iat: nowS + 5 }) })
    await until(async () => (await statusOf(there, key)) === 403)
    const old = there.token('cleo', ['users'], { iat: nowS - 100 })
    expect(await statusOf(there, old)).toBe(200)
    expect(await statusOf(there, key)).toBe(403)
  })

  test('share no key if their peppers differ', async () => {
    const peppered = await start(database, { apiKeys: { pepper: 'black pepper, ground' } })
    const plain = await start(database, {})
    const { key } = await peppered.makeKey('dan', ['users'])
    expect(await statusOf(peppered, key)).toBe(200)
    expect(await statusOf(plain, key)).toBe(401)
  })
})

describe('an unreachable database', () => {
  test('a wrong checksum is 401, an unknown key 503; known keys and tokens still work', async () => {
    const database = await openDatabaseForTest()
    // Every request asks the database for its key, in vain.
    const world = await start(database, { apiKeys: { cacheMs: 0 } })
    const { key } = await world.makeKey('ann', ['users'])
    expect(await statusOf(world, key)).toBe(200)
    await database.close()
    const mistyped = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
    expect(await world.send('/who', { bearer: mistyped })).toMatchObject({
      status: 401,
      body: { error: { code: 'invalid_api_key' } },
    })
    expect(await world.send('/who', { bearer: createApiKey() })).toMatchObject({
      status: 503,
      body: { error: { type: 'server_error', code: 'service_unavailable' } },
    })
    expect(await statusOf(world, key)).toBe(200)
    expect(await statusOf(world, world.token('somebody new', ['users']))).toBe(200)
    const bearer = world.token('ann', ['users'])
    expect((await world.send('/v1/api-keys', { bearer })).status).toBe(503)
  })

  test('an expired key is still refused', async () => {
    const database = await openDatabaseForTest()
    const world = await start(database)
    const answer = await world.send('/v1/api-keys', {
      method: 'POST',
      bearer: world.token('ann', ['users']),
      json: { name: 'short', expires_at: new Date(world.now().getTime() + 60_000).toISOString() },
    })
    const key = String(Object(answer.body).key)
    expect(await statusOf(world, key)).toBe(200)
    await database.close()
    world.pass(61_000)
    expect(await statusOf(world, key)).toBe(401)
  })
})

describe.skipIf(serverUrl === undefined)('a database server that disconnects and returns', () => {
  async function startBehindProxy() {
    const database = await openDatabaseForTest()
    const direct = new URL(database.place.databaseUrl ?? '')
    const proxy = await startTcpProxy({ host: direct.hostname, port: Number(direct.port) })
    closings.push(proxy.stop)
    const indirect = new URL(direct)
    indirect.port = String(proxy.port)
    const behind = await start(await connectAgain(database, indirect.href))
    return { direct: await start(database), behind, proxy }
  }

  test('is queried again, and unknown keys are found', async () => {
    const { direct, behind, proxy } = await startBehindProxy()
    const { key } = await direct.makeKey('ann', ['users'])
    await proxy.goDown()
    expect(await statusOf(behind, key)).toBe(503)
    await proxy.comeUp()
    await until(async () => (await statusOf(behind, key)) === 200)
  })

  test('is not waited for while it hangs, and is queried again afterwards', async () => {
    const { direct, behind, proxy } = await startBehindProxy()
    const known = await direct.makeKey('ann', ['users'])
    const unknown = await direct.makeKey('ann', ['users'])
    expect(await statusOf(behind, known.key)).toBe(200)
    proxy.freeze()
    setRequestWait(500)
    expect(await statusOf(behind, unknown.key)).toBe(503)
    expect(await statusOf(behind, known.key)).toBe(200)
    expect(await statusOf(behind, behind.token('somebody new', ['users']))).toBe(200)
    proxy.thaw()
    setRequestWait(helperTimeoutMs)
    await until(async () => (await statusOf(behind, unknown.key)) === 200)
  })

  test('revocations during the outage are found, because every cache is cleared', async () => {
    const { direct, behind, proxy } = await startBehindProxy()
    const { id, key } = await direct.makeKey('bob', ['users'])
    expect(await statusOf(behind, key)).toBe(200)
    await proxy.goDown()
    const bearer = direct.token('bob', ['users'])
    await direct.send(`/v1/api-keys/${id}`, { method: 'DELETE', bearer })
    expect(await statusOf(behind, key)).toBe(200)
    await proxy.comeUp()
    await until(async () => (await statusOf(behind, key)) === 401)
  })
})
