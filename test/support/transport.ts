import { createFetchTransport } from '#inference/transport/fetch-transport.ts'
import { createSocketTransport } from '#inference/transport/socket-transport.ts'
import type { Transport } from '#inference/transport.ts'

const limits = { idleMs: 1_000, bufferBytesMax: 65_536, idleSocketsPerOriginMax: 8 }

/** The product's own transport, with small limits. */
export function openTransport(): Transport {
  return createSocketTransport({
    ...limits,
    connectMs: () => 2_000,
    headerBytesMax: 16_384,
  })
}

/** The transport over `fetch`, so that adapters are tested apart from our own client. */
export const fetchTransport: Transport = createFetchTransport({ ...limits, fetch })
