import { describe, expect, test } from 'bun:test'
import { createCallReport } from '#inference/call-report.ts'
import { usageOfTokens } from '#inference/events.ts'
import { type CallKind, type CallRecord, OpenCall } from '#inference/open-call.ts'
import { AppError } from '#lib/errors.ts'
import { createMetricRegistry } from '#telemetry/metrics.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import { target } from '#test/support/generations.ts'
import { startQueue } from '#test/support/queued-calls.ts'

function start(keySeriesMax: number | null = null) {
  const lines: { level: string; message: string; fields: object | undefined }[] = []
  const write = (level: string) => (message: string, fields?: object) =>
    void lines.push({ level, message, fields })
  const metrics = createMetricRegistry({ seriesMax: 100 })
  const log = { info: write('info'), debug: write('debug') }
  const report = createCallReport({ log, metrics, keySeriesMax })
  /** The series of a metric: labels, and its total, or the count and the sum of a histogram. */
  const series = (name: string) =>
    metrics
      .snapshot()
      .filter(({ definition }) => definition.name === name)
      .flatMap((metric) => metric.series)
      .map(({ labels, values }) => {
        const [sum = 0, ...counts] = values.toReversed()
        const isCounter = counts.length === 0
        return [...labels, ...(isCounter ? [sum] : [counts.reduce((a, b) => a + b), sum])]
      })
  return { report, lines, series }
}

function record(kind: CallKind, given: Partial<CallRecord> = {}): CallRecord {
  const call = new OpenCall(kind, 'asked', { context: makeRequestContext(), targets: [] })
  return { ...call.record, target: target('http://a.test/v1', 'gpu'), ...given }
}

const usage = { ...usageOfTokens(7, 5), cachedTokens: 3 }
const completed = {
  outcome: 'completed',
  usage,
  firstEventMs: 500,
  durationMs: 2_500,
} as const

describe('the metrics', () => {
  test('of a completed stream have its times and tokens', () => {
    const { report, series } = start()
    report.callEnded(record('generate', completed), true)
    const of = ['gpu', 'upstream-name'] as const
    expect(series('sluice_generations_total')).toContainEqual([...of, 'completed', 1])
    expect(series('sluice_tokens_total').toSorted()).toEqual([
      [...of, 'cached', 3],
      [...of, 'input', 7],
      [...of, 'output', 5],
    ])
    expect(series('gen_ai_client_token_usage').toSorted()).toEqual([
      ['chat', ...of, 'input', 1, 7],
      ['chat', ...of, 'output', 1, 5],
    ])
    expect(series('sluice_generation_duration_seconds')).toEqual([[...of, 1, 2.5]])
    expect(series('sluice_first_event_seconds')).toEqual([[...of, 1, 0.5]])
    expect(series('gen_ai_server_time_to_first_token_seconds')).toEqual([[...of, 1, 0.5]])
    expect(series('gen_ai_server_time_per_output_token_seconds')).toEqual([[...of, 1, 0.5]])
    expect(series('gen_ai_server_request_duration_seconds')).toEqual([['chat', ...of, '', 1, 2.5]])
    expect(series('sluice_upstream_retries_total')).toEqual([])
    expect(series('sluice_upstream_hedges_total')).toEqual([])
  })

  test.each<[string, Partial<CallRecord>, boolean]>([
    ['is not streamed', completed, false],
    ['fails', { ...completed, outcome: 'failed' }, true],
    ['has one token', { ...completed, usage: usageOfTokens(7, 1) }, true],
    ['reports no usage', { ...completed, usage: null }, true],
    ['has no output', { ...completed, firstEventMs: null }, true],
  ])('have no time per token if a generation %s', (_, given, isStreamed) => {
    const { report, series } = start()
    report.callEnded(record('generate', given), isStreamed)
    const counts = series('gen_ai_server_time_per_output_token_seconds').map((each) => each.at(-2))
    expect(counts).toEqual([0])
  })

  test('have two tokens as the fewest with a time per token', () => {
    const { report, series } = start()
    report.callEnded(record('generate', { ...completed, usage: usageOfTokens(7, 2) }), true)
    expect(series('gen_ai_server_time_per_output_token_seconds')[0]?.slice(2)).toEqual([1, 2])
  })

  test('name the failure, or the client that left', () => {
    const { report, series } = start()
    const error = new AppError('upstream_error', 'x')
    report.callEnded(record('generate', { outcome: 'failed', error, durationMs: 0 }), true)
    report.callEnded(record('generate', { outcome: 'cancelled', durationMs: 0 }), true)
    report.callEnded(record('generate', { outcome: 'completed', error, durationMs: 0 }), true)
    const types = series('gen_ai_server_request_duration_seconds').map((each) => each[3])
    expect(types).toEqual(['upstream_error', 'client_closed', ''])
  })

  test('count retries and second attempts, also of calls without a target', () => {
    const { report, series } = start()
    report.callEnded(record('generate', { retries: 2, hedged: true }), true)
    report.callEnded(record('generate', { retries: 1, target: null }), true)
    expect(series('sluice_upstream_retries_total')).toEqual([
      ['gpu', 2],
      ['', 1],
    ])
    expect(series('sluice_upstream_hedges_total')).toEqual([['gpu', 1]])
    expect(series('gen_ai_server_request_duration_seconds')[1]?.slice(0, 3)).toEqual([
      'chat',
      '',
      'none',
    ])
  })

  test.each([
    ['embed', 'embeddings'],
    ['rerank', 'rerank'],
    ['speak', 'speak'],
  ] as const)('of %s have its operation and its input tokens', (kind, operation) => {
    const { report, series } = start()
    report.callEnded(record(kind, completed), false)
    report.callEnded(record(kind, { ...completed, usage: null }), false)
    const of = [operation, 'gpu', 'upstream-name']
    expect(series('gen_ai_client_token_usage')).toEqual([[...of, 'input', 1, 7]])
    expect(series('gen_ai_server_request_duration_seconds')).toEqual([[...of, '', 2, 5]])
    expect(series('sluice_generations_total')).toEqual([])
  })

  test('have no token counts', () => {
    const { report, series } = start(10)
    report.callEnded(record('count-tokens', completed), false)
    expect(series('gen_ai_server_request_duration_seconds')).toEqual([])
    expect(series('sluice_key_calls_total')).toEqual([])
  })

  test('of keys are kept only where the operator wants them', () => {
    const { report, series } = start(10)
    report.callEnded(record('embed', { ...completed, keyId: 'key_1' }), false)
    report.callEnded(record('embed', { outcome: 'failed' }), false)
    expect(series('sluice_key_calls_total')).toEqual([
      ['key_1', 'completed', 1],
      ['none', 'failed', 1],
    ])
    expect(series('sluice_key_tokens_total')).toEqual([
      ['key_1', 'input', 7],
      ['key_1', 'output', 5],
    ])
    const without = start()
    without.report.callEnded(record('embed', { ...completed, keyId: 'key_1' }), false)
    expect(without.series('sluice_key_calls_total')).toEqual([])
  })

  test('of attempts have their time and their failure', () => {
    const { report, series } = start()
    const { slot } = startQueue({ nowMs: () => 0 }).ask().granted
    if (slot === null) throw new Error('no slot')
    report.attemptEnded(slot, null, 2_000)
    report.attemptEnded(slot, new AppError('upstream_error', 'x'), 1_000)
    slot.kind = 'count-tokens'
    report.attemptEnded(slot, null, 1_000)
    expect(series('gen_ai_client_operation_duration_seconds')).toEqual([
      ['chat', 'gpu', 'upstream-name', '', 1, 2],
      ['chat', 'gpu', 'upstream-name', 'upstream_error', 1, 1],
    ])
  })
})

describe('the log line', () => {
  test.each([
    ['generate', 'info', 'generation ended'],
    ['embed', 'debug', 'embedding ended'],
    ['rerank', 'debug', 'rerank ended'],
    ['speak', 'debug', 'speech ended'],
    ['count-tokens', 'debug', 'token count ended'],
  ] as const)('of %s is written at the level %s', (kind, level, message) => {
    const { report, lines } = start()
    report.callEnded(record(kind, completed), false)
    expect(lines).toMatchObject([{ level, message }])
  })

  test('has what happened, and nothing else', () => {
    const { report, lines } = start()
    report.callEnded(record('generate', completed), true)
    const least = {
      request_id: 'req_1',
      user_id: 'user-1',
      key_id: null,
      model: 'asked',
      upstream: 'gpu',
      outcome: 'completed',
      retries: 0,
      first_event_ms: 500,
      duration_ms: 2_500,
      input_tokens: 7,
      output_tokens: 5,
    }
    expect(lines[0]?.fields).toEqual(least)
    const error = new AppError('upstream_error', 'It failed.', { cause: 'why' })
    const failed = { outcome: 'failed', error, usage: null, firstEventMs: null } as const
    report.callEnded(record('generate', { ...failed, queuedMs: 3.6, hedged: true }), true)
    expect(lines[1]?.fields).toEqual({
      ...least,
      outcome: 'failed',
      kind: 'upstream_error',
      reason: 'It failed.',
      cause: 'why',
      queue_ms: 4,
      hedged: true,
      first_event_ms: null,
      duration_ms: 0,
      input_tokens: null,
      output_tokens: null,
    })
  })

  test('is not written where the line of the request has it', () => {
    const { report, lines } = start()
    report.callEnded(record('generate', { ...completed, isReported: true }), true)
    expect(lines).toEqual([])
  })
})
