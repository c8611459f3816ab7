import type { Exchange } from '#lib/exchange.ts'

/** A client asks for the header of the same name by sending it. */
const requestHeader = 'x-server-timing'

export function wantsServerTiming(headers: Pick<Headers, 'get'>): boolean {
  return headers.get(requestHeader) !== null
}

/**
 * The value of `Server-Timing`, as far as it is known when the headers are sent: of a stream up to its
 * first event. Milliseconds from the arrival of the request, except for `queue` and `connect`.
 */
export function renderServerTiming(exchange: Exchange): string {
  const { authorizedAtMs, connectMs, firstEventMs, receivedAtMs } = exchange
  const queuedMs = Math.max(exchange.queuedMs, exchange.queuedUntilOutputMs)
  const parts = [
    authorizedAtMs === 0 ? null : timing('auth', authorizedAtMs - receivedAtMs),
    queuedMs === 0 ? null : timing('queue', queuedMs),
    connectMs === null ? null : timing('connect', connectMs),
    firstEventMs === null ? null : timing('first-event', firstEventMs),
    exchange.isOpen ? null : timing('total', performance.now() - receivedAtMs),
  ]
  return parts.filter((part) => part !== null).join(', ')
}

function timing(name: string, ms: number): string {
  return `${name};dur=${ms.toFixed(1)}`
}
