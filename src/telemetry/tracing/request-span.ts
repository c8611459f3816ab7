import { type ExchangeObserver, outcomeOf } from '#lib/exchange.ts'

/** Ends the span of each exchange, before its log line is written. */
export function observeExchanges(next: ExchangeObserver): ExchangeObserver {
  return {
    ended(exchange) {
      const { trace, error, call, endedAtMs } = exchange
      if (trace?.span != null) {
        const { span } = trace
        const { method, route } = exchange
        span.rename(route === null ? method : `${method} ${route}`)
        span.set({
          'http.route': route,
          'http.response.status_code': exchange.status,
          'http.request.body.size': exchange.bytesIn,
          'http.response.body.size': exchange.bytesOut,
          'client.address': exchange.clientAddress,
          'user.id': exchange.userId,
          'sluice.api_key.id': exchange.keyId,
          'sluice.outcome': outcomeOf(exchange),
        })
        const failure = error ?? call?.error ?? null
        // Of a server, a refusal is no failure (semantic conventions of HTTP).
        if (failure !== null && outcomeOf(exchange) === 'failed')
          span.fail(failure.kind, failure.message)
        else if (failure !== null) span.set({ 'error.type': failure.kind })
        span.end(endedAtMs)
      }
      next.ended(exchange)
    },
  }
}
