import { existsSync, readFileSync } from 'node:fs'

const mebibyte = 1_048_576
/** The bytes that the gateway itself may buffer for one stream. */
const gatewayBytesMax = 4 * mebibyte
/** Less than the streams of these tests, so a gateway without a bound exceeds it. */
const kernelBytesMax = 36 * mebibyte

/** The largest socket buffer of the kernel; `fallback` if unknown. */
function socketBufferMax(name: 'tcp_rmem' | 'tcp_wmem', fallback: number): number {
  const path = `/proc/sys/net/ipv4/${name}`
  if (!existsSync(path)) return fallback
  return Number(readFileSync(path, 'utf8').trim().split(/\s+/)[2])
}

const connectionBytesMax =
  socketBufferMax('tcp_rmem', 6 * mebibyte) + socketBufferMax('tcp_wmem', 4 * mebibyte)

/**
 * The maximum that an upstream sends for a client that does not read: the buffers of both
 * connections, whose limits differ between machines, and those of the gateway.
 */
export const heldBytesMax = gatewayBytesMax + Math.min(kernelBytesMax, 2 * connectionBytesMax)
