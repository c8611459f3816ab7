import { parseArgs } from 'node:util'
import { userIdOf } from '#auth/principal.ts'
import { openDatabase } from '#db/client.ts'
import { asRecord } from '#lib/json.ts'
import { createLog } from '#telemetry/log.ts'
import { stopChildren, temporaryFolder } from './support/children.ts'
import { createDatabase } from './support/database.ts'
import { startGateway } from './support/gateway.ts'
import { fillLists, type ListSizes } from './support/list-fill.ts'
import { listPaths } from './support/list-paths.ts'
import { startServer } from './support/load.ts'
import { numberIn } from './support/options.ts'
import { writeResult } from './support/report.ts'
import { formatSpread, formatTable, median } from './support/table.ts'

export const summary = 'Every list of the console, with millions of rows behind it, at the API.'
export const usage =
  '[--quick] [--records 10000000] [--files 100000] [--keys 10000] [--audits 1000000] [--users 10000] [--agents 5000] [--database postgres://…] [--json FILE]'

/** A slower list fails the benchmark. */
const listMsMax = 200
const roundsMax = 15
const vectorSize = '8'
const ownerSubject = 'owner of the files'

type Row = { readonly list: string; readonly rows: number; readonly ms: readonly number[] }

export async function run(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  try {
    const { databaseServer } = options
    const databaseUrl =
      databaseServer === undefined ? undefined : await createDatabase(databaseServer)
    const rows = await measure(options, databaseUrl)
    const table = formatTable(
      ['list', 'rows', 'ms'],
      rows.map(({ list, rows: count, ms }) => [list, String(count), formatSpread(ms, 1)]),
    )
    console.log(`\n${table}\n`)
    writeResult('lists', options, { rows })
    return rows.every(({ ms }) => median(ms) <= listMsMax) ? 0 : 1
  } finally {
    await stopChildren()
  }
}

function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      records: { type: 'string', default: '10000000' },
      files: { type: 'string', default: '100000' },
      keys: { type: 'string', default: '10000' },
      audits: { type: 'string', default: '1000000' },
      users: { type: 'string', default: '10000' },
      agents: { type: 'string', default: '5000' },
      database: { type: 'string' },
      json: { type: 'string' },
    },
  })
  const size = (name: keyof ListSizes) => numberIn(values[name], { name, from: 10, to: 1e9 })
  return {
    sizes: {
      records: size('records'),
      files: size('files'),
      keys: size('keys'),
      audits: size('audits'),
      users: size('users'),
      agents: size('agents'),
    } satisfies ListSizes,
    rounds: values.quick ? 3 : roundsMax,
    databaseServer: values.database,
    jsonFile: values.json,
  }
}

async function measure(
  { sizes, rounds }: ReturnType<typeof readOptions>,
  databaseUrl: string | undefined,
): Promise<readonly Row[]> {
  const dataFolder = temporaryFolder()
  const start = async () =>
    startGateway({
      upstreamPort: await startServer('embedding-upstream.ts', [vectorSize]),
      upstreamApi: 'chat',
      databaseUrl,
      dataFolder,
      configLines: `[[model]]\nname = "m"\nmode = "embed"\nupstreams = ["default"]\n`,
    })
  // The embedded database belongs to one process: it is filled before the gateway starts.
  const log = createLog({
    level: 'error',
    format: 'text',
    now: () => new Date(),
    write: (line) => console.error(line),
  })
  const database = await openDatabase({ databaseUrl, dataFolder, connectionsMax: 1, log })
  const startedAt = performance.now()
  await fillLists(database, sizes, userIdOf(ownerSubject)).finally(database.close)
  console.log(`filled in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  const gateway = await start()
  const origin = `http://127.0.0.1:${gateway.port}`
  const authorization = `Bearer ${await gateway.token(ownerSubject, ['admins'])}`
  const read = async (path: string) => {
    const response = await fetch(origin + path, { headers: { authorization } })
    const body = asRecord(await response.json())
    if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`)
    return body
  }
  const rows: Row[] = []
  for (const [list, path] of await listPaths(read)) {
    const ms: number[] = []
    let count = 0
    for (let round = 0; round < rounds; round++) {
      const at = performance.now()
      const { data } = await read(path)
      ms.push(performance.now() - at)
      count = Array.isArray(data) ? data.length : 1
    }
    rows.push({ list, rows: count, ms })
  }
  return rows
}
