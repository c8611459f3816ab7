import { afterEach, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { type Database, openDatabase } from '#db/client.ts'
import { appGroup } from '#db/schema/auth.ts'
import { DatabaseStartError } from '#db/start-error.ts'
import { createBarePlace, onServer, serverUrl, type TestPlace } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { startTcpProxy } from '#test/support/tcp-proxy.ts'

const places: TestPlace[] = []
const databases: Database[] = []

afterEach(async () => {
  await Promise.all(databases.splice(0).map((database) => database.close()))
  await Promise.all(places.splice(0).map((place) => place.remove()))
})

async function newPlace(): Promise<TestPlace> {
  const place = await createBarePlace()
  places.push(place)
  return place
}

async function open(place: Pick<TestPlace, 'databaseUrl' | 'dataFolder'>): Promise<Database> {
  const database = await openDatabase({ ...place, connectionsMax: 2, log: quietLog })
  databases.push(database)
  return database
}

async function groupNames(database: Database): Promise<string[]> {
  const rows = await database.drizzle.select().from(appGroup).orderBy(appGroup.name)
  return rows.map((row) => row.name)
}

/** The message of a failed start. */
async function startErrorOf(starting: Promise<Database>): Promise<string> {
  const error = await starting.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(DatabaseStartError)
  return error instanceof Error ? error.message : ''
}

/** Resolves when the condition holds; otherwise the test times out. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(10)
}

describe('a database', () => {
  test('has its tables and pgvector after the first start', async () => {
    const database = await open(await newPlace())
    expect(await groupNames(database)).toEqual([])
    const [row] = await database.drizzle.execute(
      sql`select '[1,2]'::vector <-> '[1,4]' as distance`,
    )
    expect(row?.['distance']).toBe(2)
  })

  test('keeps its rows across restarts', async () => {
    const place = await newPlace()
    const first = await open(place)
    await first.drizzle.insert(appGroup).values({ name: 'editors', permissions: ['can_edit'] })
    await first.close()
    const second = await open(place)
    expect(await second.drizzle.select().from(appGroup)).toMatchObject([
      { name: 'editors', permissions: ['can_edit'] },
    ])
  })

  test('rolls back a failed transaction, or only a failed nested one', async () => {
    const database = await open(await newPlace())
    const insert = (handle: Pick<Database['drizzle'], 'insert'>, name: string) =>
      handle.insert(appGroup).values({ name, permissions: [] })
    const failed = database.drizzle.transaction(async (outer) => {
      await insert(outer, 'lost')
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    await database.drizzle.transaction(async (outer) => {
      await insert(outer, 'kept')
      const inner = outer.transaction(async (nested) => {
        await insert(nested, 'lost')
        await insert(nested, 'lost')
      })
      await inner.catch(() => {})
    })
    expect(await groupNames(database)).toEqual(['kept'])
  })

  test('runs concurrent queries, each with its own result', async () => {
    const database = await open(await newPlace())
    const numbers = Array.from({ length: 200 }, (_, index) => index)
    const answers = await Promise.all(
      numbers.map(async (number) => {
        const [row] = await database.drizzle.execute(sql`select ${number}::int as number`)
        return row?.['number']
      }),
    )
    expect(answers).toEqual(numbers)
  })

  test('delivers notifications to the listeners of their channel', async () => {
    const database = await open(await newPlace())
    const received: string[] = []
    const listener = { onMessage: (payload: string) => received.push(payload), onGap: () => {} }
    await database.listen('first', listener)
    await database.listen('second', {
      ...listener,
      onMessage: () => received.push('wrong channel'),
    })
    await database.notify('first', 'with: a colon')
    await database.notify('first', '')
    await until(() => received.length === 2)
    expect(received).toEqual(['with: a colon', ''])
  })

  test('keeps delivering after a listener has thrown', async () => {
    const database = await open(await newPlace())
    const received: string[] = []
    const failing = () => {
      throw new Error('listener')
    }
    await database.listen('news', { onMessage: failing, onGap: failing })
    await database.listen('news', { onMessage: (text) => received.push(text), onGap: () => {} })
    await database.notify('news', 'one')
    await until(() => received.length === 1)
    expect(received).toEqual(['one'])
  })

  test('rejects queries after it is closed', async () => {
    const database = await open(await newPlace())
    await database.close()
    await expect(database.ping()).rejects.toThrow()
  })
})

describe('an unreachable server', () => {
  test('is named in the error without its password', async () => {
    const message = await startErrorOf(
      open({ databaseUrl: 'postgres://user:hunter2@127.0.0.1:1/sluice', dataFolder: '/nowhere' }),
    )
    expect(message).toContain('PostgreSQL at 127.0.0.1:1 cannot be used')
    expect(message).not.toContain('hunter2')
  })

  test('fails after a timeout if it never responds', async () => {
    using silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    const databaseUrl = `postgres://user@127.0.0.1:${silent.port}/sluice?connect_timeout=1`
    expect(await startErrorOf(open({ databaseUrl, dataFolder: '/nowhere' }))).toContain(
      'no response within 1 s',
    )
  })

  test('requires a URL', async () => {
    const message = await startErrorOf(open({ databaseUrl: 'nonsense', dataFolder: '/nowhere' }))
    expect(message).toBe('DATABASE_URL is not a PostgreSQL URL.')
  })
})

describe.skipIf(serverUrl === undefined)('a PostgreSQL server', () => {
  async function openThroughProxy() {
    const place = await newPlace()
    const direct = new URL(place.databaseUrl ?? '')
    const proxy = await startTcpProxy({ host: direct.hostname, port: Number(direct.port) })
    const indirect = new URL(direct)
    indirect.port = String(proxy.port)
    const database = await open({ ...place, databaseUrl: indirect.href })
    return { database, proxy, place }
  }

  test('is migrated once by concurrent starts', async () => {
    const place = await newPlace()
    const opened = await Promise.all([open(place), open(place), open(place)])
    expect(await Promise.all(opened.map(groupNames))).toEqual([[], [], []])
  })

  test('delivers notifications between processes', async () => {
    const place = await newPlace()
    const [sender, receiver] = [await open(place), await open(place)]
    const received: string[] = []
    await receiver.listen('news', { onMessage: (text) => received.push(text), onGap: () => {} })
    await sender.notify('news', 'one')
    await until(() => received.length === 1)
    expect(received).toEqual(['one'])
  })

  test('is used again after an outage, and listeners are notified of the gap', async () => {
    const { database, proxy } = await openThroughProxy()
    const received: string[] = []
    await database.listen('news', {
      onMessage: (text) => received.push(text),
      onGap: () => received.push('gap'),
    })
    await database.listen('other', { onMessage: () => {}, onGap: () => received.push('other gap') })
    await proxy.goDown()
    await expect(database.ping()).rejects.toThrow()
    await expect(Promise.all([database.ping(), database.ping()])).rejects.toThrow()
    await proxy.comeUp()
    await until(() => received.length === 2)
    expect(received).toEqual(['gap', 'other gap'])
    await database.notify('news', 'after')
    await until(() => received.length === 3)
    expect(received).toEqual(['gap', 'other gap', 'after'])
    await proxy.stop()
  })

  test('fails a transaction whose connection is lost, and continues', async () => {
    const { database, proxy } = await openThroughProxy()
    const broken = database.drizzle.transaction(async (transaction) => {
      await transaction.insert(appGroup).values({ name: 'lost', permissions: [] })
      await proxy.goDown()
      await proxy.comeUp()
      await transaction.insert(appGroup).values({ name: 'lost too', permissions: [] })
    })
    await expect(broken).rejects.toThrow()
    await broken.catch(() => {})
    await until(() =>
      database.ping().then(
        () => true,
        () => false,
      ),
    )
    expect(await groupNames(database)).toEqual([])
    await proxy.stop()
  })

  test('returns correct results or errors while connections break, and never commits half a transaction', async () => {
    const { database, proxy } = await openThroughProxy()
    await database.drizzle.execute(sql`create table pair (number int)`)
    let stopped = false
    const counts = { right: 0, wrong: 0, failed: 0 }
    const ask = async (number: number) => {
      if (number % 3 === 0) {
        await database.drizzle.transaction(async (transaction) => {
          await transaction.execute(sql`insert into pair values (${number}::int)`)
          await transaction.execute(sql`insert into pair values (${number}::int)`)
        })
        return true
      }
      const length = number % 40
      const rows = await database.drizzle.execute(
        sql`select ${number}::int as number from generate_series(1, ${length}::int)`,
      )
      return rows.length === length && rows.every((row) => row['number'] === number)
    }
    const client = async (first: number) => {
      for (let number = first; !stopped; number += 12) {
        const outcome = await ask(number).then(
          (isRight) => (isRight ? 'right' : 'wrong'),
          () => 'failed' as const,
        )
        counts[outcome] += 1
      }
    }
    const clients = Array.from({ length: 12 }, (_, index) => client(index))
    for (let cut = 0; cut < 10; cut++) {
      const before = counts.right
      await until(() => counts.right > before + 50)
      await proxy.goDown()
      await proxy.comeUp()
    }
    stopped = true
    await Promise.all(clients)
    expect(counts).toMatchObject({ wrong: 0 })
    expect(counts.failed).toBeGreaterThan(0)
    const halves = await database.drizzle.execute(
      sql`select number from pair group by number having count(*) <> 2`,
    )
    expect([...halves]).toEqual([])
    await database.close()
    await proxy.stop()
  })

  test('explains how to create the extension', async () => {
    const place = await newPlace()
    const url = new URL(place.databaseUrl ?? '')
    const role = `guest_${crypto.randomUUID().replaceAll('-', '')}`
    await onServer(`create role ${role} login password 'guest'`)
    url.username = role
    url.password = 'guest'
    expect(await startErrorOf(open({ ...place, databaseUrl: url.href }))).toContain('pgvector')
    await onServer(`drop role ${role}`)
  })
})
