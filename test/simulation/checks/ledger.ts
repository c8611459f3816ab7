import type postgres from 'postgres'
import type { Client } from '../client.ts'
import type { Book } from '../record.ts'
import type { Site } from '../site/site.ts'
import type { World } from '../world.ts'
import { withDatabase } from './leftovers.ts'

/**
 * What a killed worker may lose (docs/usage.md): the calls that ended in its last second and, on a busy
 * machine, in the time of two writes to the database, which is looked for in the last seconds.
 */
const lostMs = 1_000
const writes = 2
const lookBackMs = 10_000
/** After an outage a worker writes again within its backoff. */
const backoffMs = 2_500

type Span = { readonly fromMs: number; readonly toMs: number }

/**
 * Spans in which ended calls may have no record: before each kill a second, or the whole outage of
 * the database, or the time for which the killed worker was frozen.
 */
function lossSpans({ kills, slowness }: Site, { faults }: Book): Span[] {
  const pauses = faults.filter(
    ({ kind }) => kind.startsWith('PostgreSQL') || kind.includes('frozen'),
  )
  const losing = kills.filter(({ isOrderly }) => !isOrderly)
  return losing.map(({ atMs }) => {
    const ownMs = lostMs + writes * slowness.worstMs(atMs - lookBackMs, atMs)
    const pause = pauses.filter(
      ({ startedMs, endedMs }) => startedMs <= atMs && endedMs + backoffMs >= atMs - ownMs,
    )
    const fromMs = Math.min(atMs, ...pause.map(({ startedMs }) => startedMs)) - ownMs
    return { fromMs, toMs: atMs + 100 }
  })
}

/** Each acknowledged call has one record, each call that an upstream received is counted. */
export async function checkLedger(given: {
  site: Site
  world: World
  clients: readonly Client[]
  book: Book
}): Promise<void> {
  const { site, world, book } = given
  const spans = lossSpans(site, book)
  const isLosable = (fromMs: number, toMs: number) =>
    spans.some((span) => fromMs <= span.toMs && toMs >= span.fromMs)
  await withDatabase(site.postgres.url, async (sql) => {
    const records = await recordsByRequest(sql)
    for (const [requestId, { kind, endedMs }] of world.calls) {
      const found = records.get(requestId) ?? 0
      if (found > 1)
        book.violate('a call is recorded once', `${requestId} (${kind}): ${found} records`)
      // The end that the client saw comes after that of the call.
      if (found === 0 && !isLosable(endedMs - lostMs, endedMs)) {
        book.violate('an acknowledged call is recorded', `${requestId} (${kind})`)
      }
    }
    await checkServedCalls(sql, given, isLosable)
    await checkSums(sql, given)
  })
}

async function recordsByRequest(sql: postgres.Sql): Promise<Map<string, number>> {
  const rows = await sql<{ request_id: string; count: number }[]>`
    select request_id, count(*)::int as count from usage_record
    where kind in ('generation', 'embedding', 'rerank') group by request_id`
  return new Map(rows.map((row) => [row.request_id, row.count]))
}

/** By tenant: records and their retries are at least the calls that the upstreams received. */
async function checkServedCalls(
  sql: postgres.Sql,
  { site, clients, book }: { site: Site; clients: readonly Client[]; book: Book },
  isLosable: (fromMs: number, toMs: number) => boolean,
): Promise<void> {
  const served = site.upstreams.flatMap((upstream) =>
    upstream.served.filter(({ path }) => path.endsWith('/chat/completions')),
  )
  for (const client of clients) {
    const { id } = await client.json('/v1/me')
    const [row] = await sql<{ calls: number }[]>`
      select coalesce(sum(1 + retries), 0)::int as calls from usage_record
      where kind = 'generation' and user_id = ${String(id)}`
    const own = served.filter(({ prompt }) => prompt?.tenant === client.index)
    const losable = own.filter(({ startedMs, endedMs }) => isLosable(startedMs, endedMs + lostMs))
    const calls = row?.calls ?? 0
    if (calls >= own.length - losable.length) continue
    const detail = `${client.name}: ${calls} recorded, ${own.length} served, of which ${losable.length} may be lost`
    book.violate('every request is accounted for', detail)
  }
}

/** The sums of `GET /v1/usage` are those of the records: each was added once. */
async function checkSums(
  sql: postgres.Sql,
  { clients, book }: { clients: readonly Client[]; book: Book },
): Promise<void> {
  const [records] = await sql<{ count: number; tokens: number }[]>`
    select count(*)::int as count, sum(input_tokens + output_tokens)::int as tokens from usage_record`
  const admin = clients[0]
  const usage = await admin?.json('/v1/usage?group_by=day')
  const { requests, input_tokens, output_tokens } = Object(usage?.['totals'])
  const tokens = Number(input_tokens) + Number(output_tokens)
  if (requests === records?.count && tokens === records?.tokens) return
  const detail = `${requests} requests, ${tokens} tokens; records: ${JSON.stringify(records)}`
  book.violate('the sums of usage are those of its records', detail)
}
