import { createSocketTransport } from '#inference/transport/socket-transport.ts'
import type { Transport } from '#inference/transport.ts'

/** The product's own transport, with small limits. */
export function openTransport(): Transport {
  return createSocketTransport({
    connectMs: 2_000,
    idleMs: 1_000,
    idleSocketsPerOriginMax: 8,
    headerBytesMax: 16_384,
    bufferBytesMax: 65_536,
  })
}
