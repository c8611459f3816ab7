import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSpeech } from '#test/support/speech-client.ts'
import { type SpeechServer, startSpeechServer } from '#test/support/speech-server.ts'

let gateway: Gateway
let server: SpeechServer

beforeAll(async () => {
  gateway = await startGateway()
  server = startSpeechServer(gateway, { websocket: { recheckMs: 50 } })
})
afterAll(async () => {
  await server.stop()
  await gateway.stop()
})

test('a revoked key ends its session, also before the handshake, and no other', async () => {
  const made = Object(await (await gateway.post('/v1/api-keys', { name: 'stt' })).json())
  const open = (token: string) => openSpeech(server.port, { token })
  const [live, silent, other] = [
    await open(made['key']),
    await open(made['key']),
    await open(await gateway.token()),
  ]
  await live.start({})
  await other.start({})
  await gateway.request(`/v1/api-keys/${made['id']}`, { method: 'DELETE' })
  for (const client of [live, silent]) {
    expect(await client.refusal()).toMatchObject({ code: 'unauthorized', closeCode: 1008 })
  }
  await other.end()
  await eventually('nothing is left', () => server.sessions.metrics().connections === 0)
})
