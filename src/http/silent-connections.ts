import { dlopen, ptr } from 'bun:ffi'
import { readDescriptors } from '#lib/descriptors.ts'

/** Connections whose client has sent nothing; Bun closes them only after its idle timeout. */
export type SilentConnections = {
  /** Closes up to `countMax` of those that are silent for this long, the longest silent first. */
  close(options: { silentMs: number; countMax: number }): number
}

/** Each costs a microsecond, when descriptors run out. */
const examinedMax = 65_536

// From the headers of Linux; the start of `struct tcp_info` never changes.
const ipProtocolTcp = 6
const tcpInfoOption = 11
const shutdownBoth = 2
const established = 1
const at = { state: 0, lastDataReceivedMs: 52, bytesReceived: 128 }
const infoBytes = 136
/** `struct sockaddr_in` and `sockaddr_in6`: the port follows the family, in network byte order. */
const addressBytesMax = 128
const portAt = 2

/**
 * The connections that this process has accepted on a port, as the kernel knows them: Bun has no list
 * of its connections. On other systems than Linux there are none to find.
 */
export function createSilentConnections(port: number): SilentConnections {
  const descriptors = readDescriptors()
  const libc = descriptors === null ? null : openLibc()
  if (descriptors === null || libc === null) return { close: () => 0 }
  // A list of the open ones would need a descriptor itself.
  const descriptorsMax = Math.min(descriptors.limit, examinedMax)
  const { getsockopt, getsockname, shutdown } = libc
  const info = new DataView(new ArrayBuffer(infoBytes))
  const address = new DataView(new ArrayBuffer(addressBytesMax))
  const length = new Uint32Array(1)

  /** How long the client of this socket has sent nothing at all; null for any other descriptor. */
  function silentMs(descriptor: number): number | null {
    length[0] = infoBytes
    const isTcp =
      getsockopt(descriptor, ipProtocolTcp, tcpInfoOption, ptr(info), ptr(length)) === 0 &&
      length[0] === infoBytes
    if (!isTcp || info.getUint8(at.state) !== established) return null
    if (info.getBigUint64(at.bytesReceived, true) > 0n) return null
    length[0] = addressBytesMax
    // Connections to upstreams have other ports.
    const isOurs =
      getsockname(descriptor, ptr(address), ptr(length)) === 0 && address.getUint16(portAt) === port
    return isOurs ? info.getUint32(at.lastDataReceivedMs, true) : null
  }

  return {
    close({ silentMs: leastMs, countMax }) {
      const silent: { descriptor: number; ms: number }[] = []
      for (let descriptor = 0; descriptor < descriptorsMax; descriptor++) {
        const ms = silentMs(descriptor)
        if (ms !== null && ms >= leastMs) silent.push({ descriptor, ms })
      }
      silent.sort((left, right) => right.ms - left.ms).splice(countMax)
      // Bun sees the end of the connection and closes its descriptor.
      for (const { descriptor } of silent) shutdown(descriptor, shutdownBoth)
      return silent.length
    },
  }
}

/** The C library, which is part of this process: of glibc or musl. */
function openLibc() {
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  for (const name of ['libc.so.6', `libc.musl-${machine}.so.1`]) {
    try {
      return dlopen(name, {
        getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
        getsockname: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
        shutdown: { args: ['i32', 'i32'], returns: 'i32' },
      }).symbols
    } catch {
      // The other one.
    }
  }
  return null
}
