import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { openSocket } from '#test/support/socket-client.ts'

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

test('a turn of a WebSocket counts for its API key', async () => {
  const made = await gateway.post('/v1/api-keys', { name: 'k' })
  const { id, key } = Object(await made.json())
  const headers = { authorization: `Bearer ${key}` }
  const socket = await openSocket(gateway.port, { headers })
  const { response } = await socket.turn({ model: 'demo-fast', input: 'Hi', store: false })
  expect(response).toMatchObject({ status: 'completed' })
  await eventually('the record is written', async () => {
    const answer = await gateway.request(`/v1/usage?group_by=key&key=${id}`)
    return Object(await answer.json()).data[0]?.requests === 1
  })
})
