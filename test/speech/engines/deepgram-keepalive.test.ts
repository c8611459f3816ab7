import { expect, test } from 'bun:test'
import { deepgramKind } from '#speech/engines/deepgram.ts'
import { engineConfig, engineDeps, openSession } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { startDeepgramPeer } from '#test/support/scripted-engines/deepgram-peer.ts'

test('no keepalive follows the request to end', async () => {
  const peer = startDeepgramPeer({ mute: true })
  const quick = { keepAliveMs: 20, finalizeMs: 30, slowFinalizeMs: 60 }
  const config = engineConfig({ kind: 'deepgram', url: peer.url })
  const recorder = await openSession(deepgramKind(quick).create(config, engineDeps()))
  recorder.session.end()
  await eventually('the end was requested', () => peer.received().commands.includes('CloseStream'))
  await Bun.sleep(quick.keepAliveMs * 5)
  expect(peer.received().commands.at(-1)).toBe('CloseStream')
  recorder.session.abort()
  await peer.stop()
})
