import type { Database } from '#db/client.ts'
import { keyColumns } from '#usage/ledger-store.ts'
import type { UsageRecord } from '#usage/record.ts'

/** Of these, each user calls two models. */
const models = 6
const modelsPerUser = 2
const upstreams = 3

/** The id of the n-th user, and of their key. */
export function userOf(index: number): string {
  return `00000000-0000-8000-8000-${index.toString(16).padStart(12, '0')}`
}

/**
 * Fills the hourly sums as if every user had called two models in each hour, `records` times in all.
 * Returns how many sums there are.
 */
export async function fillSums(
  { drizzle, kind }: Pick<Database, 'drizzle' | 'kind'>,
  given: { records: number; users: number; from: Date; hours: number },
): Promise<number> {
  const { records, users, from, hours } = given
  const sums = users * hours * modelsPerUser
  const requests = Math.max(1, Math.round(records / sums))
  await drizzle.execute(`
    insert into usage_hour (hour, user_id, key_id, model, upstream, kind, outcome, requests,
      input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_nanos, duration_ms)
    select '${from.toISOString()}'::timestamptz + make_interval(hours => hour), id, id,
      'model-' || (person * ${modelsPerUser} + model) % ${models},
      'upstream-' || (person + model) % ${upstreams}, 'generation', 'completed', ${requests},
      ${requests} * 1500, ${requests} * 900, ${requests} * 300, ${requests} * 50,
      ${requests} * 1200000, ${requests} * 2500
    from generate_series(0, ${hours - 1}) as hour, generate_series(0, ${users - 1}) as person,
      generate_series(0, ${modelsPerUser - 1}) as model,
      lateral (select ('00000000-0000-8000-8000-' || lpad(to_hex(person), 12, '0'))::uuid as id) as ids`)
  const sumNames = `requests, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_nanos, duration_ms`
  await drizzle.execute(`
    insert into usage_day (day, ${keyColumns}, ${sumNames})
    select date_trunc('day', hour, 'UTC'), ${keyColumns},
      ${sumNames.replaceAll(/\w+/g, 'sum($&)')}
    from usage_hour group by 1, ${keyColumns}`)
  await drizzle.execute(kind === 'postgres' ? 'vacuum analyze' : 'vacuum')
  return sums
}

/** Records of a hundred users that ended within a second. */
export function makeRecords(count: number, at: Date): UsageRecord[] {
  return Array.from({ length: count }, (_, index) => {
    const endedAt = new Date(at.getTime() + (index % 1_000))
    const user = userOf(index % 100)
    return {
      id: Bun.randomUUIDv7('hex', endedAt),
      endedAt,
      kind: 'generation',
      userId: user,
      keyId: user,
      agentId: null,
      surface: 'responses',
      model: `model-${index % models}`,
      requestedModel: null,
      upstream: `upstream-${index % upstreams}`,
      upstreamModel: 'model',
      outcome: 'completed',
      errorKind: null,
      retries: 0,
      requestId: `req_${index}`,
      responseId: null,
      inputTokens: 1_500,
      cachedTokens: 900,
      cacheWriteTokens: 0,
      outputTokens: 300,
      reasoningTokens: 50,
      estimated: false,
      audioMs: 0,
      costNanos: 1_200_000,
      queueMs: 0,
      firstEventMs: 200,
      durationMs: 2_500,
    }
  })
}
