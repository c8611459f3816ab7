import type { Transport } from '#inference/transport.ts'
import { createFetchTransport, type FetchTransportOptions } from './fetch-transport.ts'
import { createSocketTransport, type SocketTransportOptions } from './socket-transport.ts'

export type TransportKind = 'socket' | 'fetch'

/** The transport of that kind, within the same limits as far as it can hold them. */
export function createTransport(
  kind: TransportKind,
  options: SocketTransportOptions & Pick<FetchTransportOptions, 'fetch'>,
): Transport & { close(): void } {
  return kind === 'socket'
    ? createSocketTransport(options)
    : createFetchTransport({ ...options, idleSocketsMax: options.idleSocketsPerOriginMax })
}
