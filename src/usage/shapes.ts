import { type Static, Type } from '@sinclair/typebox'
import { idExample, instant, instantExample, listOf, nullable } from '#api/shapes.ts'
import { nanosPerUnit } from '#limits/prices.ts'
import type { CsvColumns } from './csv.ts'
import { type Dimension, isTime, noId, type UsageGroup, type UsageSums } from './grouping.ts'
import { groupId } from './query.ts'
import { type UsageRecord, usageKinds, usageOutcomes } from './record.ts'

/** Wire shapes of the usage endpoints. */

const msPerSecond = 1_000

const count = (description: string) => Type.Integer({ minimum: 0, description })
const seconds = (description: string) => Type.Number({ minimum: 0, description })
const cost = nullable(Type.Number(), 'In the currency of the price table; null without prices.')
const tokens = {
  input_tokens: count('Cached tokens are included.'),
  cached_tokens: count('Of the input: read from the cache of the upstream.'),
  cache_write_tokens: count('Of the input: written to it.'),
  output_tokens: count('Reasoning is included.'),
  reasoning_tokens: count('Of the output.'),
  audio_seconds: seconds('Speech that was received.'),
  cost,
}

const usageSums = {
  requests: count('Calls to models, speech sessions and files.'),
  estimated_requests: count('Of these, those whose tokens are estimated.'),
  retries: count('Further attempts.'),
  ...tokens,
  duration_seconds: seconds('The sum of their durations.'),
}
const sumsSchema = Type.Object(usageSums, { $id: 'UsageSums' })

const groupSchema = Type.Object(
  {
    id: Type.String({ description: '`after` of the next page.' }),
    object: Type.Literal('usage'),
    start: Type.Optional(instant('When the hour, day or month began')),
    model: Type.Optional(Type.String()),
    user_id: Type.Optional(nullable(Type.String(), 'Null: work of the gateway itself.')),
    user_name: Type.Optional(nullable(Type.String(), 'Null if it is not known.')),
    key_id: Type.Optional(nullable(Type.String(), 'Null: a token was used.')),
    key_name: Type.Optional(nullable(Type.String(), 'Null if there is no such key any more.')),
    agent_id: Type.Optional(nullable(Type.String(), 'Null: the model was called by itself.')),
    upstream: Type.Optional(nullable(Type.String(), 'Null: no upstream was tried.')),
    kind: Type.Optional(Type.String()),
    outcome: Type.Optional(Type.String()),
    ...usageSums,
  },
  { $id: 'UsageGroup', description: 'Only the fields of `group_by` are present.' },
)
export type GroupShape = Static<typeof groupSchema>

export const usageTable = Type.Object({
  ...listOf(groupSchema).properties,
  from: instant('The beginning of the first hour'),
  to: instant('The end of the last hour'),
  totals: Type.Unsafe<Static<typeof sumsSchema>>(sumsSchema),
})

export const recordSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    object: Type.Literal('usage_record'),
    kind: Type.Union(usageKinds.map((kind) => Type.Literal(kind))),
    started_at: instant('When it began'),
    ended_at: instant('When it ended'),
    user_id: nullable(Type.String(), 'Null: work of the gateway itself.'),
    key_id: nullable(Type.String(), 'Null: a token was used.'),
    agent_id: nullable(Type.String(), 'The agent that was called.'),
    surface: nullable(Type.String(), '`responses` or `messages`.'),
    model: Type.String(),
    requested_model: nullable(Type.String(), 'The name in the request, if it was another one.'),
    upstream: nullable(Type.String(), 'The last one that was tried.'),
    upstream_model: nullable(
      Type.String(),
      'The name of the model there; only with `can_manage_models`.',
    ),
    outcome: Type.Union(usageOutcomes.map((outcome) => Type.Literal(outcome))),
    error: nullable(Type.String(), 'The kind of the error.'),
    retries: count('Further attempts.'),
    request_id: Type.String({
      description: 'The `x-request-id`: several calls of one request have the same.',
    }),
    response_id: nullable(Type.String(), 'Of a stored response.'),
    ...tokens,
    estimated: Type.Boolean({ description: 'The upstream reported no tokens.' }),
    queue_ms: nullable(Type.Integer(), 'How long it waited for an upstream with capacity.'),
    first_event_ms: nullable(Type.Integer(), 'From its beginning to its first output.'),
    duration_ms: Type.Integer(),
  },
  { $id: 'UsageRecord' },
)
export type RecordShape = Static<typeof recordSchema>

function renderTokens(use: Omit<UsageSums, 'requests' | 'estimated' | 'retries' | 'durationMs'>) {
  return {
    input_tokens: use.inputTokens,
    cached_tokens: use.cachedTokens,
    cache_write_tokens: use.cacheWriteTokens,
    output_tokens: use.outputTokens,
    reasoning_tokens: use.reasoningTokens,
    audio_seconds: use.audioMs / msPerSecond,
    cost: use.costNanos === null ? null : use.costNanos / nanosPerUnit,
  }
}

export function renderSums(sums: UsageSums): Static<typeof sumsSchema> {
  return {
    requests: sums.requests,
    estimated_requests: sums.estimated,
    retries: sums.retries,
    ...renderTokens(sums),
    duration_seconds: sums.durationMs / msPerSecond,
  }
}

/** `names`: of users and keys, by id. */
export function renderGroup(
  { values, sums }: UsageGroup,
  by: readonly Dimension[],
  names: ReadonlyMap<string, string>,
): GroupShape {
  const fields = by.map((dimension, at) => renderValue(dimension, values[at] ?? '', names))
  return {
    id: groupId(values),
    object: 'usage',
    ...Object.assign({}, ...fields),
    ...renderSums(sums),
  }
}

function renderValue(dimension: Dimension, value: string, names: ReadonlyMap<string, string>) {
  if (isTime(dimension)) return { start: value }
  const idOrNull = value === noId ? null : value
  const named = names.get(value) ?? null
  switch (dimension) {
    case 'user':
      return { user_id: idOrNull, user_name: named }
    case 'key':
      return { key_id: idOrNull, key_name: named }
    case 'agent':
      return { agent_id: idOrNull }
    case 'upstream':
      return { upstream: value === '' ? null : value }
    default:
      return { [dimension]: value }
  }
}

export function renderRecord(record: UsageRecord, isManager: boolean): RecordShape {
  return {
    id: record.id,
    object: 'usage_record',
    kind: record.kind,
    started_at: new Date(record.endedAt.getTime() - record.durationMs).toISOString(),
    ended_at: record.endedAt.toISOString(),
    user_id: record.userId,
    key_id: record.keyId,
    agent_id: record.agentId,
    surface: record.surface,
    model: record.model,
    requested_model: record.requestedModel,
    upstream: record.upstream,
    upstream_model: isManager ? record.upstreamModel : null,
    outcome: record.outcome,
    error: record.errorKind,
    retries: record.retries,
    request_id: record.requestId,
    response_id: record.responseId,
    ...renderTokens(record),
    estimated: record.estimated,
    queue_ms: record.queueMs,
    first_event_ms: record.firstEventMs,
    duration_ms: record.durationMs,
  }
}

const sumColumns = Object.keys(usageSums) as (keyof typeof usageSums)[]

export function groupColumns(by: readonly Dimension[]): CsvColumns<GroupShape> {
  const none = new Map<string, string>()
  const names = by.flatMap((dimension) =>
    Object.keys(renderValue(dimension, '', none)),
  ) as (keyof GroupShape)[]
  return [...names, ...sumColumns].map((name) => [name, (row) => row[name] ?? null] as const)
}

export const recordColumns: CsvColumns<RecordShape> = (
  Object.keys(recordSchema.properties) as (keyof RecordShape)[]
)
  .filter((name) => name !== 'object')
  .map((name) => [name, (row) => row[name]] as const)

const sumsExample: Static<typeof sumsSchema> = {
  requests: 412,
  estimated_requests: 2,
  retries: 1,
  input_tokens: 901_240,
  cached_tokens: 512_000,
  cache_write_tokens: 0,
  output_tokens: 88_013,
  reasoning_tokens: 20_400,
  audio_seconds: 0,
  cost: 1.25,
  duration_seconds: 1_930.5,
}
const groupValues = [instantExample, 'llama-3.3-70b']
const groupExample: GroupShape = {
  id: groupId(groupValues),
  object: 'usage',
  start: '2026-11-21T00:00:00.000Z',
  model: 'llama-3.3-70b',
  ...sumsExample,
}
export const tableExample: Static<typeof usageTable> = {
  object: 'list',
  data: [groupExample],
  has_more: false,
  first_id: groupExample.id,
  last_id: groupExample.id,
  from: '2026-11-01T00:00:00.000Z',
  to: '2026-12-01T00:00:00.000Z',
  totals: sumsExample,
}
export const recordExample: RecordShape = {
  id: idExample,
  object: 'usage_record',
  kind: 'generation',
  started_at: '2026-11-21T09:29:56.100Z',
  ended_at: instantExample,
  user_id: '5f2b1c9e-7a34-8d60-9e11-c4a8b7d20f35',
  key_id: null,
  agent_id: null,
  surface: 'responses',
  model: 'llama-3.3-70b',
  requested_model: null,
  upstream: 'vllm',
  upstream_model: null,
  outcome: 'completed',
  error: null,
  retries: 0,
  request_id: 'req_0a1b2c3d4e5f6g7h8j9k0m1n2p',
  response_id: null,
  input_tokens: 2_104,
  cached_tokens: 2_048,
  cache_write_tokens: 0,
  output_tokens: 311,
  reasoning_tokens: 0,
  audio_seconds: 0,
  cost: null,
  estimated: false,
  queue_ms: 0,
  first_event_ms: 240,
  duration_ms: 3_900,
}
