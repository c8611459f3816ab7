import { dlopen, FFIType } from 'bun:ffi'

const { i32, u32, ptr } = FFIType
const inetFamily = 2
const streamSocket = 1

/**
 * A port of loopback that listens, has no room left for a connection and never accepts one: every
 * further attempt to connect hangs, as if a firewall swallowed it. Linux with glibc only.
 */
export async function listenWithoutAccepting(): Promise<{ port: number; close(): void }> {
  const libc = dlopen('libc.so.6', {
    socket: { args: [i32, i32, i32], returns: i32 },
    bind: { args: [i32, ptr, u32], returns: i32 },
    listen: { args: [i32, i32], returns: i32 },
    getsockname: { args: [i32, ptr, ptr], returns: i32 },
    close: { args: [i32], returns: i32 },
  })
  const fd = libc.symbols.socket(inetFamily, streamSocket, 0)
  const address = new DataView(new ArrayBuffer(16))
  address.setUint16(0, inetFamily, true)
  address.setUint32(4, 0x7f000001)
  const addressBytes = new Uint8Array(address.buffer)
  const failed =
    libc.symbols.bind(fd, addressBytes, 16) !== 0 ||
    libc.symbols.listen(fd, 0) !== 0 ||
    libc.symbols.getsockname(fd, addressBytes, new Uint32Array([16])) !== 0
  if (failed) throw new Error('the port could not be opened')
  const port = address.getUint16(2)
  // A backlog of 0 has room for one connection.
  const filler = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
  return {
    port,
    close() {
      filler.terminate()
      libc.symbols.close(fd)
    },
  }
}
