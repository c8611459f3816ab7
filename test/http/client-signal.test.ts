import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { ClientSignal } from '#http/client-signal.ts'

let server: Bun.Server<undefined>
let arrived: PromiseWithResolvers<ClientSignal>

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      arrived.resolve(new ClientSignal(request))
      return new Promise<Response>(() => {})
    },
  })
})
afterAll(() => server.stop(true))

async function send(): Promise<{ socket: Socket; signal: ClientSignal }> {
  arrived = Promise.withResolvers()
  const socket = connect(server.port ?? 0, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  return { socket, signal: await arrived.promise }
}

/** Long enough to be watched. */
const watchedMs = 200

test.each([0, watchedMs])('a client that disconnects after %d ms aborts it', async (afterMs) => {
  const { socket, signal } = await send()
  const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', resolve))
  await Bun.sleep(afterMs)
  expect(signal.aborted).toBe(false)
  socket.destroy()
  await aborted
  expect(signal.aborted).toBe(true)
  expect(() => signal.throwIfAborted()).toThrow(expect.objectContaining({ name: 'AbortError' }))
})

test('who starts to listen late is told too, and who has left is not', async () => {
  const { socket, signal } = await send()
  let calls = 0
  const leave = () => calls++
  signal.addEventListener('abort', leave)
  signal.removeEventListener('abort', leave)
  await Bun.sleep(watchedMs)
  const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', resolve))
  socket.destroy()
  await aborted
  expect(calls).toBe(0)
})
