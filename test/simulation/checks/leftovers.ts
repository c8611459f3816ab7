import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import { isAlive } from '#test/support/process.ts'
import { workGauges } from '#test/support/work-gauges.ts'
import { workersEach } from '../site/replicas.ts'
import type { Site } from '../site/site.ts'

/**
 * The longest time that the gateway documents for something to be released after a crash: a job's
 * lease of 30 s, a suspended worker's 20 s (`frozen_max_ms` here), a restart's pause of 30 s.
 */
export const settlingMs = 90_000
const lookEveryMs = 500

/** Connections opened to reach every worker, where one worker serves the metrics of its own. */
const scrapes = 24

/** Rows that only unfinished work has, by what they are. */
const restless: readonly (readonly [string, string])[] = [
  ['unfinished responses', "select id from response where status in ('queued', 'in_progress')"],
  [
    'jobs',
    "select queue || ' ' || coalesce(last_error, '') from job where run_at < now() + interval '1 day'",
  ],
  ['slots of limits', 'select key from limit_slot where slots > 0'],
  [
    'files without an index',
    "select file_id::text || ' ' || stage from file_index where state = 'pending'",
  ],
  ['usage that is not summed', 'select id::text from usage_batch'],
  [
    'parts of ended uploads',
    "select p.id::text from upload_part p join upload u on u.id = p.upload_id where u.status <> 'pending'",
  ],
  ['advisory locks', "select objid::text from pg_locks where locktype = 'advisory'"],
  [
    'open transactions',
    "select application_name from pg_stat_activity where state like 'idle in transaction%'",
  ],
]

/** Waits until nothing is left of the work; returns what still is. */
export async function waitUntilSettled(site: Site): Promise<readonly string[]> {
  const endsMs = performance.now() + settlingMs
  for (;;) {
    const left = await findLeftovers(site)
    if (left.length === 0 || performance.now() > endsMs) return left
    await Bun.sleep(lookEveryMs)
  }
}

async function findLeftovers(site: Site): Promise<string[]> {
  const metrics = await Promise.all(site.replicas.map(({ url }) => nonZeroGauges(url)))
  const missing = site.replicas.flatMap((replica) =>
    replica.workers().length === workersEach ? [] : [`${replica.name} lacks workers`],
  )
  return [
    ...missing,
    ...metrics.flat(),
    ...(await restlessRows(site)),
    ...site.upstreams.flatMap((each) =>
      each.running() === 0 ? [] : [`${each.running()} requests at ${each.name}`],
    ),
    ...site.kills.filter(({ pid }) => isAlive(pid)).map(({ pid }) => `killed process ${pid}`),
    ...listFolder(site.temporaryFolder).map((name) => `temporary file ${name}`),
  ]
}

async function nonZeroGauges(url: string): Promise<string[]> {
  const pages = new Set<string>()
  for (let scrape = 0; scrape < scrapes; scrape++) {
    const response = await fetch(`${url}/metrics`, { keepalive: false }).catch(() => null)
    if (response === null) return [`${url} does not respond`]
    pages.add(await response.text())
  }
  const lines = [...pages].flatMap((page) => page.split('\n'))
  return [...new Set(lines.filter(isNonZero))]
}

function isNonZero(line: string): boolean {
  const name = /^[a-z_]+/.exec(line)?.[0] ?? ''
  return workGauges.includes(name) && Number(line.slice(line.lastIndexOf(' ') + 1)) !== 0
}

async function restlessRows({ postgres: { url } }: Site): Promise<string[]> {
  return withDatabase(url, async (sql) => {
    const found: string[] = []
    for (const [what, query] of restless) {
      const rows = await sql.unsafe(query)
      if (rows.length === 0) continue
      const shown = rows.slice(0, 5).map((row) => Object.values(row).join(' '))
      found.push(`${rows.length} ${what}: ${shown.join(', ')}`)
    }
    return found
  })
}

export async function withDatabase<T>(
  url: string,
  work: (sql: postgres.Sql) => Promise<T>,
): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    return await work(sql)
  } finally {
    await sql.end()
  }
}

function listFolder(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
}
