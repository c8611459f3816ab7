import type { SocketClient } from '#test/support/socket-client.ts'
import { Broken, type Client, Refused } from '../client.ts'
import { ViolationError } from '../record.ts'

/** Rejects with a violation if the work takes longer. */
export async function withDeadline<T>(what: string, ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new ViolationError('every operation ends', `${what} took ${ms} ms`))
    timer = setTimeout(fail, ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Opens a WebSocket at a replica that accepts connections; throws `Refused` if it is not upgraded. */
export async function openAnywhere<T extends SocketClient>(
  { origins, below }: Client,
  open: (port: number) => Promise<T>,
): Promise<T> {
  const first = below(origins.length)
  for (let tries = 0; tries < origins.length; tries++) {
    const origin = origins[(first + tries) % origins.length] ?? ''
    const socket = await open(Number(new URL(origin).port))
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(socket.head)?.[1] ?? 0)
    if (status === 101) return socket
    socket.socket.destroy()
    if (status !== 0) throw new Refused('WebSocket', { status, text: socket.head })
  }
  throw new Broken('WebSocket: no connection')
}
