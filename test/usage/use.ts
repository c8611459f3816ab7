import { userIdOf } from '#auth/principal.ts'
import type { UsageRecord } from '#usage/record.ts'

export const ann = userIdOf('ann')
export const bob = userIdOf('bob')
export const annsKey = '0198f3a2-0000-7000-8000-0000000000a1'

/** A record of a generation that ended at this time. */
export function makeRecord(endedAt: string, given: Partial<UsageRecord> = {}): UsageRecord {
  const at = new Date(endedAt)
  return {
    id: Bun.randomUUIDv7('hex', at),
    endedAt: at,
    kind: 'generation',
    userId: ann,
    keyId: null,
    agentId: null,
    surface: 'responses',
    model: 'm',
    requestedModel: null,
    upstream: 'u',
    upstreamModel: 'm-1',
    outcome: 'completed',
    errorKind: null,
    retries: 0,
    requestId: 'req_1',
    responseId: null,
    inputTokens: 10,
    cachedTokens: 4,
    cacheWriteTokens: 1,
    outputTokens: 5,
    reasoningTokens: 2,
    estimated: false,
    audioMs: 0,
    costNanos: null,
    queueMs: 0,
    firstEventMs: 20,
    durationMs: 100,
    ...given,
  }
}

/** A batch of such records. */
export function makeBatch(...records: readonly UsageRecord[]) {
  return { id: Bun.randomUUIDv7(), records }
}
