import { afterEach, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { signToken, stopProcesses } from '#test/support/process.ts'
import { startReloading } from '#test/support/reloading.ts'
import { openSpeech } from '#test/support/speech-client.ts'

/** Live sessions while the engines of the configuration change. */
afterEach(stopProcesses)

const engine = (name: string, rest = '') => `[[engine]]\nname = "${name}"\nkind = "demo"\n${rest}`

test('a session continues on its engine after that was removed; the next one has the new engine', async () => {
  const { gateway, change } = await startReloading(engine('one'))
  const token = await signToken()
  const live = await openSpeech(gateway.port(), { token })
  const ready = await live.start({ options: { flow: 'credit' } })
  expect(ready.engine.name).toBe('one')
  live.sendAudio(new Uint8Array(32_000))
  await eventually('it has arrived', () => live.of('audio_ack').at(-1)?.received_bytes === 32_000)
  const { changed } = await change(engine('two', 'sessions_max = 5'))
  expect(changed).toMatchObject([
    { key: 'engine.one', after: null },
    { key: 'engine.two', before: null },
  ])
  live.sendAudio(new Uint8Array(32_000))
  await eventually('it has arrived', () => live.of('audio_ack').at(-1)?.received_bytes === 64_000)
  const { stats } = await live.end()
  expect(stats).toMatchObject({
    audio_ms: 2_000,
    untranscribed_ms: 0,
    engine: { name: 'one', sessions: 1, rollovers: 0 },
  })
  const next = await openSpeech(gateway.port(), { token })
  expect((await next.start()).engine.name).toBe('two')
  next.socket.destroy()
})
