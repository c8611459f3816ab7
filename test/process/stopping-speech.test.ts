import { afterEach, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { signToken, startGatewayProcess, stopProcesses } from '#test/support/process.ts'
import { openSpeech } from '#test/support/speech-client.ts'

/** Speech sessions at shutdown. */
afterEach(stopProcesses)

test('SIGTERM ends live sessions after their last results, and the process exits cleanly', async () => {
  const gateway = await startGatewayProcess()
  const token = await signToken()
  const [live, lost] = [
    await openSpeech(gateway.port(), { token }),
    await openSpeech(gateway.port(), { token }),
  ]
  await live.start({ options: { flow: 'credit' } })
  await lost.start()
  live.sendAudio(new Uint8Array(48_000))
  await eventually('it has arrived', () => live.of('audio_ack').at(-1)?.received_bytes === 48_000)
  lost.socket.destroy()

  gateway.signal('SIGTERM')
  expect(await live.refusal()).toMatchObject({ code: 'draining', closeCode: 1001 })
  expect(live.of('error')[0]?.stats).toMatchObject({ audio_ms: 1_500, untranscribed_ms: 0 })
  expect(await gateway.exited).toBe(0)
  const ended = gateway.log().filter(({ session_end }) => session_end !== undefined)
  expect(ended.map(({ session_end }) => session_end)).toEqual(['draining', 'draining'])
  expect(JSON.stringify(gateway.log())).not.toContain(token)
})
