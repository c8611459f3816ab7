import { afterEach, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type HeldUpstream, startHeldUpstream } from '#test/support/held-upstream.ts'
import { signToken, startGatewayProcess, stopProcesses } from '#test/support/process.ts'
import { openSocket } from '#test/support/raw-exchange.ts'

let upstream: HeldUpstream | undefined

afterEach(async () => {
  await stopProcesses()
  await upstream?.stop()
})

// As it comes, Bun lets 256 requests run and the others wait.
const streams = 300

test('a gateway over fetch exceeds the concurrency limit of fetch', async () => {
  upstream = await startHeldUpstream()
  const gateway = await startGatewayProcess({
    environment: { SLUICE_TRANSPORT: 'fetch', SLUICE_CONFIG: upstream.configFile },
  })
  const body = JSON.stringify({ model: 'held', input: 'hello', stream: true, store: false })
  const request =
    `POST /v1/responses HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${await signToken()}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  const sockets = await Promise.all(
    Array.from({ length: streams }, () => openSocket(gateway.port(), request)),
  )
  await eventually('every stream has begun', () => upstream?.held() === streams)
  for (const socket of sockets) socket.destroy()
  await eventually('none is left', () => upstream?.held() === 0)
  expect(gateway.log().filter(({ level }) => level === 'error')).toEqual([])
})
