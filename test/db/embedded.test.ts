import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { openDatabase } from '#db/client.ts'
import { startEmbeddedServer } from '#db/embedded.ts'
import { appGroup } from '#db/schema/auth.ts'
import { createEmbeddedPlace } from '#test/support/database.ts'
import { quietLog } from '#test/support/quiet-log.ts'

const removals: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const remove of removals.splice(0)) await remove()
})

async function newFolder(name?: string): Promise<string> {
  const place = await createEmbeddedPlace(name)
  removals.push(place.remove)
  return place.dataFolder
}

function open(dataFolder: string) {
  return openDatabase({ dataFolder, connectionsMax: 1, log: quietLog })
}

describe('the embedded database', () => {
  test('is created on the first start, over the remains of an interrupted one', async () => {
    const dataFolder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
    removals.push(() => rmSync(dataFolder, { recursive: true }))
    mkdirSync(join(dataFolder, 'pglite'))
    mkdirSync(join(dataFolder, 'pglite.new-before'))
    writeFileSync(join(dataFolder, 'pglite.new-before', 'PG_VERSION'), 'half a file')
    const database = await open(dataFolder)
    await database.ping()
    await database.close()
    expect(existsSync(join(dataFolder, 'pglite.new-before'))).toBe(false)
  })

  test('rejects a data folder that is in use', async () => {
    const dataFolder = await newFolder()
    const first = await open(dataFolder)
    await expect(open(dataFolder)).rejects.toThrow(
      `The data folder ${dataFolder} is in use by process ${process.pid}.`,
    )
    await first.ping()
    await first.close()
    const second = await open(dataFolder)
    await second.close()
  })

  test('reports why it cannot open', async () => {
    const dataFolder = await newFolder()
    writeFileSync(join(dataFolder, 'pglite', 'PG_VERSION'), '7.4\n')
    await expect(open(dataFolder)).rejects.toThrow(/pglite does not open: ./)
    rmSync(join(dataFolder, 'pglite', 'PG_VERSION'))
    await expect(open(dataFolder)).rejects.toThrow(/pglite holds files but no database/)
    const file = join(dataFolder, 'file')
    writeFileSync(file, '')
    await expect(open(join(file, 'data'))).rejects.toThrow(/file\/data cannot be used: ./)
  })

  test('keeps committed rows after SIGKILL', async () => {
    const dataFolder = await newFolder()
    const program = new URL('../support/hold-database.ts', import.meta.url).pathname
    // Another working directory, because it must not matter.
    const holder = Bun.spawn([process.execPath, program, dataFolder], {
      cwd: tmpdir(),
      stdout: 'pipe',
    })
    removals.push(() => holder.kill('SIGKILL'))
    for await (const chunk of holder.stdout) {
      expect(new TextDecoder().decode(chunk)).toContain('committed')
      break
    }
    await expect(open(dataFolder)).rejects.toThrow('in use')
    holder.kill('SIGKILL')
    await holder.exited
    const database = await open(dataFolder)
    expect(await database.drizzle.select().from(appGroup)).toMatchObject([
      { name: 'kept', permissions: [] },
    ])
    await database.close()
  })

  test('is accessible to its own user only', async () => {
    const dataFolder = await newFolder()
    const database = await open(dataFolder)
    expect(statSync(join(dataFolder, 'run')).mode & 0o777).toBe(0o700)
    expect(statSync(join(dataFolder, 'pglite')).mode & 0o777).toBe(0o700)
    await database.close()
  })

  test('works in a folder whose path is too long for a socket', async () => {
    const dataFolder = await newFolder('a-rather-long-name/'.repeat(8))
    const database = await open(dataFolder)
    await database.ping()
    await database.close()
  })

  test('restarts after its engine was killed during a query', async () => {
    const server = await startEmbeddedServer(await newFolder(), quietLog)
    const client = postgres({ path: server.socketPath, user: 'postgres', max: 1, backoff: () => 0 })
    await client`create table kept (number int)`
    await client`insert into kept values (1)`
    const endless = client`select count(*) from generate_series(1, 1e12::bigint)`.execute()
    setTimeout(server.restart, 100)
    await expect(endless).rejects.toThrow()
    let rows: unknown
    while (rows === undefined) {
      rows = await client`select number from kept`.then(
        ([row]) => row,
        () => undefined,
      )
    }
    expect(rows).toEqual({ number: 1 })
    await client.end()
    await server.close()
  })
})
