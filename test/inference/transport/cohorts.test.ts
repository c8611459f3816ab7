import { expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { okAnswer, serveScript } from './scripted-server.ts'
import { openTransport, request, textOf } from './transport-client.ts'

test('responses that arrive in one turn take their next steps together', async () => {
  const transport = openTransport('socket')
  const server = await serveScript(async (peer) => {
    while (true) {
      await peer.nextRequest()
      ready.push(() => peer.write(okAnswer))
      // Both are written at once. The kernel may still deliver them in two turns.
      if (ready.length === 2) for (const respond of ready.splice(0)) void respond()
    }
  })
  const ready: (() => Promise<void>)[] = []
  const steps: string[] = []
  async function ask() {
    const response = await transport.send(request(server.url))
    steps.push('first')
    await null
    steps.push('second')
    expect(await textOf(response)).toBe('ok')
  }
  await eventually('two responses arrive in one turn', async () => {
    steps.length = 0
    await Promise.all([ask(), ask()])
    return steps.join() === 'first,first,second,second'
  })
  transport.close()
  server.stop()
})
