import type { PooledTransport } from '#inference/transport.ts'
import { createFetchTransport, type FetchTransportOptions } from './fetch-transport.ts'
import { createSocketTransport, type SocketTransportOptions } from './socket-transport.ts'

export type TransportKind = 'socket' | 'fetch'

const statusClasses = ['none', '1xx', '2xx', '3xx', '4xx', '5xx']

type TransportOptions = (SocketTransportOptions & FetchTransportOptions) & {
  /** Called for each response with its status class `2xx` … `5xx`, or `none` after a failure. */
  onResponse?: (upstream: string, statusClass: string) => void
}

/** A transport of that kind. The fetch transport ignores limits that it cannot enforce. */
export function createTransport(
  kind: TransportKind,
  { onResponse, ...options }: TransportOptions,
): PooledTransport {
  const transport =
    kind === 'socket' ? createSocketTransport(options) : createFetchTransport(options)
  if (onResponse === undefined) return transport
  return {
    closeIdle: transport.closeIdle,
    close: transport.close,
    send(request) {
      const { upstream } = request
      const response = transport.send(request)
      response.then(
        ({ status }) => onResponse(upstream, statusClasses[Math.floor(status / 100)] ?? 'none'),
        () => onResponse(upstream, 'none'),
      )
      return response
    },
  }
}
