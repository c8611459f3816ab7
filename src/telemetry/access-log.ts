import { type Exchange, type ExchangeObserver, outcomeOf } from '#lib/exchange.ts'
import { traceIdOf } from '#lib/trace.ts'
import type { Log } from './log.ts'

/** Which requests have a line. Failures of the gateway and of upstreams always have one. */
export type AccessLogMode = 'all' | 'errors' | 'off'

const pathCharsMax = 256

/** Logs each request with one line, when it has ended. */
export function createAccessLog({
  log,
  mode,
}: {
  log: Log
  mode: () => AccessLogMode
}): ExchangeObserver {
  return {
    ended(exchange) {
      const outcome = outcomeOf(exchange)
      const isFailure = exchange.status >= 500
      const shown = mode()
      if (!isFailure && (shown === 'off' || (shown === 'errors' && outcome === 'completed'))) return
      const fields = fieldsOf(exchange, outcome)
      if (isFailure) log.error('request failed', fields)
      else if (outcome === 'failed') log.warn('request failed', fields)
      else if (outcome === 'refused') log.info('request refused', fields)
      else if (exchange.isProbe) log.debug('request ended', fields)
      else log.info('request ended', fields)
    },
  }
}

/** Undefined fields are left out of the line. */
function fieldsOf(exchange: Exchange, outcome: ReturnType<typeof outcomeOf>) {
  const { call, path, route, trace, firstEventMs, keyId, userId } = exchange
  const failure = exchange.error ?? call?.error ?? null
  const usage =
    call === null || exchange.inputTokens + exchange.outputTokens === 0 ? null : exchange
  return {
    request_id: exchange.requestId,
    method: exchange.method,
    route: route ?? undefined,
    path: route === path ? undefined : path.slice(0, pathCharsMax),
    status: exchange.status,
    outcome,
    kind: failure?.kind,
    reason: failure?.message,
    cause: outcome === 'failed' ? failure?.cause : undefined,
    user_id: userId === null || userId === '' ? undefined : userId,
    key_id: keyId ?? undefined,
    agent_id: call?.agentId ?? undefined,
    model: call?.model,
    upstream: call?.target?.upstream.name,
    calls: exchange.callsCount > 1 ? exchange.callsCount : undefined,
    retries: call === null ? undefined : exchange.retries,
    hedged: call?.hedged === true ? true : undefined,
    input_tokens: usage?.inputTokens,
    output_tokens: usage?.outputTokens,
    cached_tokens: usage !== null && usage.cachedTokens > 0 ? usage.cachedTokens : undefined,
    queue_ms: exchange.queuedMs > 0 ? Math.round(exchange.queuedMs) : undefined,
    first_event_ms: firstEventMs === null ? undefined : Math.round(firstEventMs),
    duration_ms: Math.round(exchange.endedAtMs - exchange.receivedAtMs),
    bytes_in: exchange.bytesIn ?? undefined,
    bytes_out: exchange.bytesOut ?? undefined,
    client: exchange.clientAddress ?? undefined,
    trace_id: trace === null ? undefined : traceIdOf(trace),
    ...exchange.details,
  }
}
