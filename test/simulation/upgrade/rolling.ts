import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { asRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { withDatabase } from '../checks/leftovers.ts'
import { type Client, createClient } from '../client.ts'
import { textOf } from '../operations/model-calls.ts'
import { outputOf, promptText } from '../site/model-output.ts'
import { startModelServer } from '../site/model-server.ts'
import { postgresPrograms, startOwnPostgres } from '../site/own-postgres.ts'
import { type Replica, startReplicas } from '../site/replicas.ts'

export type UpgradeOptions = {
  /** The folders of both versions. */
  readonly previous: string
  readonly next: string
  readonly folder: string
  /** At the same time, all the while. */
  readonly streams: number
  /** Without the rollback. */
  readonly isForward?: boolean
  readonly print: (line: string) => void
}

export type UpgradeReport = {
  readonly completed: number
  /** Requests that did not complete, and responses that were not found afterwards. */
  readonly lost: readonly string[]
  /** Streams that completed in each phase. */
  readonly phases: Readonly<Record<string, number>>
  /** What the replicas warned of, each message once. */
  readonly warnings: readonly string[]
}

/** A stream of 30 words then takes three seconds. */
const wordPauseMs = 100
const words = 30
/** Requests that were sent a moment ago reach the replica. */
const rotationMs = 500
const seed = 226
/** A busy machine is no lost request. */
const databaseWaitMs = 60_000

/**
 * Replaces both replicas of the previous version by the next one, one after the other, and then back
 * again, while streams run: each is stored, complete, and readable at either version. Null without an
 * installed PostgreSQL.
 */
export async function rollAndRollBack(options: UpgradeOptions): Promise<UpgradeReport | null> {
  const programs = postgresPrograms()
  if (programs === null) return null
  const { folder, previous, next, print } = options
  chmodSync(folder, 0o711)
  const postgres = await startOwnPostgres(programs, join(folder, 'postgres'))
  const upstream = startModelServer('alpha', wordPauseMs)
  try {
    const places = ['data', 'tmp'].map((name) => join(folder, name))
    for (const place of places) mkdirSync(place)
    const [dataFolder = '', temporaryFolder = ''] = places
    const replicas = await startReplicas({
      names: ['replica-0', 'replica-1'],
      databaseUrl: postgres.url,
      dataFolder,
      temporaryFolder,
      configFolder: folder,
      upstreams: [upstream],
      workers: 1,
      databaseWaitMs,
      settings: `
[[upstream]]
name = "alpha"
url = "${upstream.url}"
models = ["chat"]

[responses]
store_wait_ms = ${databaseWaitMs}
`,
      project: previous,
    })
    const rotation = replicas.map(({ url }) => url)
    const load = startLoad(rotation, options.streams)
    const phase = async (name: string, change: () => Promise<void>) => {
      print(name)
      await change()
      await load.finishAnother(options.streams, name)
    }
    await phase('previous version', async () => {})
    await phase('migrated, previous version', () => migrate(next, postgres.url, folder))
    const changes = [
      ['upgraded', next],
      ['rolled back', previous],
      ['upgraded again', next],
    ] as const
    for (const [change, project] of options.isForward ? changes.slice(0, 1) : changes) {
      for (const replica of replicas) {
        await phase(`${replica.name} ${change}`, () =>
          replace(replica, project, rotation, load.lost),
        )
      }
    }
    await load.stop()
    for (const replica of replicas) await replica.stop()
    await checkStored(postgres.url, load)
    return {
      completed: load.ids.size,
      lost: load.lost,
      phases: load.phases,
      warnings: warningsOf(replicas),
    }
  } finally {
    await upstream.stop()
    await postgres.stop()
  }
}

/** What an operator does before the first replica is replaced: `sluice migrate` of the new version. */
async function migrate(project: string, databaseUrl: string, folder: string): Promise<void> {
  const child = Bun.spawn([process.execPath, join(project, 'src/main.ts'), 'migrate'], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', DATABASE_URL: databaseUrl, SLUICE_DATA: folder },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if ((await child.exited) !== 0) throw new Error('migrate failed')
}

/** As a load balancer and a process manager do: out of the rotation, SIGTERM, start, ready. */
async function replace(
  replica: Replica,
  project: string,
  rotation: string[],
  lost: string[],
): Promise<void> {
  rotation.splice(rotation.indexOf(replica.url), 1)
  await Bun.sleep(rotationMs)
  const code = await replica.stop()
  if (code !== 0) lost.push(`${replica.name} exited with ${code}`)
  await replica.start(project)
  rotation.push(replica.url)
}

function warningsOf(replicas: readonly Replica[]): string[] {
  const lines = replicas.flatMap(({ runs }) => runs.flatMap((run) => run.log()))
  const warnings = lines.filter(({ level }) => level === 'warn' || level === 'error')
  const texts = warnings.map(({ message, error }) =>
    [message, asRecord(error)['message']].filter(Boolean).join(': '),
  )
  return [...new Set(texts)]
}

/** So many clients, each with one stream after the other. */
function startLoad(rotation: readonly string[], streams: number) {
  const lost: string[] = []
  const ids = new Set<string>()
  const phases: Record<string, number> = {}
  let isOver = false
  const run = async (_: unknown, index: number) => {
    const client = await createClient({ index, seed, groups: ['users'], origins: rotation })
    // Spread over the duration of a stream.
    await Bun.sleep((index / streams) * words * wordPauseMs)
    while (!isOver) {
      await request(client, ids).catch((error: unknown) => {
        lost.push(`${client.name}: ${error instanceof Error ? error.message : error}`)
        return Bun.sleep(rotationMs)
      })
    }
  }
  const running = Array.from({ length: streams }, run)
  return {
    lost,
    ids,
    phases,
    async finishAnother(count: number, phase: string) {
      const from = ids.size
      while (ids.size < from + count && lost.length < count) await Bun.sleep(rotationMs)
      phases[phase] = ids.size - from
    },
    async stop() {
      isOver = true
      await Promise.all(running)
    },
  }
}

/** A stored stream, which is then read from any replica. */
async function request(client: Client, ids: Set<string>): Promise<void> {
  const prompt = client.prompt('well', words)
  const reply = await client.send('/v1/responses', {
    json: { model: 'chat', input: promptText(prompt), stream: true, store: true },
  })
  if (reply.status !== 200) throw new Error(`status ${reply.status}: ${reply.text.slice(0, 300)}`)
  const response = requireCompleted(reply.text)
  const id = String(response['id'])
  if (response['store'] === false) throw new Error(`${id} was not stored`)
  const stored = await client.json(`/v1/responses/${id}`)
  for (const each of [response, stored]) {
    if (textOf(each) !== outputOf(prompt)) throw new Error(`${id} has another text`)
  }
  ids.add(id)
}

/** The response of the only terminal event of a stream without gaps. */
function requireCompleted(wire: string): JsonObject {
  const blocks = wire.split('\n\n')
  if (blocks.at(-1) !== '' || blocks.at(-2) !== 'data: [DONE]') throw new Error('a stream was cut')
  const frames = blocks
    .slice(0, -2)
    .map((block) => asRecord(parseJson(block.slice(block.indexOf('data: ') + 'data: '.length))))
  if (frames.some((frame, at) => frame['sequence_number'] !== at))
    throw new Error('a frame is missing')
  const ends = frames.filter(({ type }) =>
    /^response\.(completed|failed|incomplete)$/.test(String(type)),
  )
  const [end] = ends
  if (ends.length !== 1 || end?.['type'] !== 'response.completed') {
    throw new Error(`a stream ended with ${JSON.stringify(ends).slice(0, 300)}`)
  }
  return asRecord(end['response'])
}

/** The database has all of them, and the ledger one record each. */
async function checkStored(
  databaseUrl: string,
  { ids, lost }: { ids: ReadonlySet<string>; lost: string[] },
): Promise<void> {
  await withDatabase(databaseUrl, async (sql) => {
    const stored = await sql<{ id: string; status: string }[]>`select id, status from response`
    const records = await sql<{ id: string; count: number }[]>`
      select response_id as id, count(*)::int as count from usage_record
      where response_id is not null group by response_id`
    const statuses = new Map(stored.map(({ id, status }) => [id, status]))
    const counts = new Map(records.map(({ id, count }) => [id, count]))
    for (const id of ids) {
      if (statuses.get(id) !== 'completed') lost.push(`${id} is ${statuses.get(id)}`)
      if (counts.get(id) !== 1) lost.push(`${id} has ${counts.get(id) ?? 0} usage records`)
    }
  })
}
