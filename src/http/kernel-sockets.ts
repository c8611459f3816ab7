import { dlopen, ptr } from 'bun:ffi'
import { closeSync, openSync, readdirSync } from 'node:fs'
import { readDescriptors } from '#lib/descriptors.ts'

/** The sockets of this process on a port, as the kernel knows them: Bun has no list of them. */
export type KernelSockets = {
  /**
   * Closes up to `countMax` connections whose client has sent nothing for this long, the longest
   * silent first; Bun closes them only after its idle timeout. Returns their number.
   */
  closeSilent(options: { silentMs: number; countMax: number }): number
  /**
   * Lets this many new connections wait to be accepted, up to the limit of the kernel. Bun asks for
   * 512: the others of a burst would wait a second, until their client tries again.
   */
  setBacklog(connections: number): void
  /**
   * The listening sockets of this moment, to be retired while their server keeps its connections: a
   * server that Bun stops closes idle ones. Null: not possible on this system.
   */
  takeListening(): RetiringSockets | null
}

/** Listening sockets, after others of the same port have taken their place. */
type RetiringSockets = {
  /** Drops new connections. Their clients try again a second later and meet the other sockets. */
  ignoreNew(): void
  /** Closes them. Connections that still wait to be accepted are reset. */
  close(): void
}

/** Each costs a microsecond, when descriptors run out. */
const examinedMax = 65_536

// From the headers of Linux; the start of `struct tcp_info` never changes.
const ipProtocolTcp = 6
const tcpInfoOption = 11
const shutdownBoth = 2
const [established, listening] = [1, 10]
const at = { state: 0, lastDataReceivedMs: 52, bytesReceived: 128 }
const infoBytes = 136
/** `struct sockaddr_in` and `sockaddr_in6`: the port follows the family, in network byte order. */
const addressBytesMax = 128
const portAt = 2

const [socketLevel, attachFilterOption] = [1, 26]
/**
 * A classic BPF program that drops the first packet of new connections, which has the flag SYN
 * without ACK. Each instruction has a code, the jumps if false and true, and an operand.
 */
const dropNew = [
  { code: 0x30, jumps: 0x0000, operand: 13 }, // load the flags of the TCP header
  { code: 0x54, jumps: 0x0000, operand: 0x12 }, // keep SYN and ACK of them
  { code: 0x15, jumps: 0x0100, operand: 0x02 }, // skip the next instruction unless it is SYN alone
  { code: 0x06, jumps: 0x0000, operand: 0 }, // drop
  { code: 0x06, jumps: 0x0000, operand: 0xffffffff }, // accept
]
const instructionBytes = 8

/** On other systems than Linux there are none to find. */
export function createKernelSockets(port: number): KernelSockets {
  const descriptors = readDescriptors()
  const libc = descriptors === null ? null : openLibc()
  if (descriptors === null || libc === null) {
    return { closeSilent: () => 0, setBacklog() {}, takeListening: () => null }
  }
  // A list of the open ones would need a descriptor itself.
  const descriptorsMax = Math.min(descriptors.limit, examinedMax)
  const { getsockopt, setsockopt, getsockname, listen, shutdown, dup2 } = libc
  const info = new DataView(new ArrayBuffer(infoBytes))
  const address = new DataView(new ArrayBuffer(addressBytesMax))
  const length = new Uint32Array(1)

  /** Reads the `info` of a TCP socket; false for other descriptors, states and ports. */
  function isOurs(descriptor: number, state: number): boolean {
    length[0] = infoBytes
    const isTcp =
      getsockopt(descriptor, ipProtocolTcp, tcpInfoOption, ptr(info), ptr(length)) === 0 &&
      length[0] === infoBytes
    if (!isTcp || info.getUint8(at.state) !== state) return false
    length[0] = addressBytesMax
    // Connections to upstreams have other ports.
    return (
      getsockname(descriptor, ptr(address), ptr(length)) === 0 && address.getUint16(portAt) === port
    )
  }

  const listListening = () =>
    readdirSync('/proc/self/fd')
      .map(Number)
      .filter((descriptor) => isOurs(descriptor, listening))

  return {
    setBacklog(connections) {
      for (const descriptor of listListening()) listen(descriptor, connections)
    },
    takeListening() {
      const taken = listListening()
      return {
        ignoreNew() {
          const { program, length } = filterProgram()
          for (const descriptor of taken) {
            setsockopt(descriptor, socketLevel, attachFilterOption, ptr(program), length)
          }
        },
        close() {
          // Bun still has the descriptors, and closes them with their server.
          const nothing = openSync('/dev/null', 'r')
          for (const descriptor of taken) dup2(nothing, descriptor)
          closeSync(nothing)
        },
      }
    },
    closeSilent({ silentMs: leastMs, countMax }) {
      const silent: { descriptor: number; ms: number }[] = []
      for (let descriptor = 0; descriptor < descriptorsMax; descriptor++) {
        if (!isOurs(descriptor, established)) continue
        if (info.getBigUint64(at.bytesReceived, true) > 0n) continue
        const ms = info.getUint32(at.lastDataReceivedMs, true)
        if (ms >= leastMs) silent.push({ descriptor, ms })
      }
      silent.sort((left, right) => right.ms - left.ms).splice(countMax)
      // Bun sees the end of the connection and closes its descriptor.
      for (const { descriptor } of silent) shutdown(descriptor, shutdownBoth)
      return silent.length
    },
  }
}

/** `struct sock_fprog` with the instructions that it points to. */
function filterProgram() {
  const headBytes = 16
  const program = new DataView(new ArrayBuffer(headBytes + dropNew.length * instructionBytes))
  program.setUint16(0, dropNew.length, true)
  program.setBigUint64(8, BigInt(ptr(program)) + BigInt(headBytes), true)
  dropNew.forEach(({ code, jumps, operand }, at) => {
    const start = headBytes + at * instructionBytes
    program.setUint16(start, code, true)
    program.setUint16(start + 2, jumps, true)
    program.setUint32(start + 4, operand, true)
  })
  return { program, length: headBytes }
}

/** The C library, which is part of this process: of glibc or musl. */
function openLibc() {
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  for (const name of ['libc.so.6', `libc.musl-${machine}.so.1`]) {
    try {
      return dlopen(name, {
        getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
        getsockname: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
        setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
        dup2: { args: ['i32', 'i32'], returns: 'i32' },
        listen: { args: ['i32', 'i32'], returns: 'i32' },
        shutdown: { args: ['i32', 'i32'], returns: 'i32' },
      }).symbols
    } catch {
      // The other one.
    }
  }
  return null
}
