import { afterEach, describe, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps, openSession, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Peer, type PeerScript, startPeer } from '#test/support/scripted-engines/peer.ts'

/** How every adapter handles a misbehaving server. */
const adapters = [
  { name: 'vosk', kind: 'vosk' },
  { name: 'deepgram', kind: 'deepgram' },
  ...(['ga', 'beta', 'vllm', 'nemo'] as const).map((dialect) => ({
    name: `openai-realtime ${dialect}`,
    kind: 'openai-realtime' as const,
    dialect,
  })),
] as const

const peers: Peer[] = []

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

/** A server that sends only what makes a session ready. */
function startPlainPeer(script: PeerScript = {}): Peer {
  const peer = startPeer({
    opened: (connection) => connection.send({ type: 'session.created' }),
    text(connection, text) {
      if (text.startsWith('{"type":"session.update"')) connection.send({ type: 'session.updated' })
      if (text.startsWith('{"type":"transcription_session.update"')) {
        connection.send({ type: 'transcription_session.updated' })
      }
    },
    ...script,
  })
  peers.push(peer)
  return peer
}

for (const adapter of adapters) {
  // Vosk servers do not greet: an unsolicited frame is an unexpected reply.
  const greets = adapter.kind === 'vosk' ? { opened: () => {} } : {}
  const arrange = (script: PeerScript = {}, given: Partial<EngineConfig> = {}) => {
    const peer = startPlainPeer({ ...greets, ...script })
    const deps = engineDeps()
    const { name: _, ...rest } = adapter
    const config = engineConfig({ ...rest, url: peer.url, ...given })
    return { peer, deps, engine: createEngine(config, deps) }
  }
  const converse = async (given: Partial<EngineConfig> = {}) => {
    const arranged = arrange({}, given)
    const recorder = await openSession(arranged.engine)
    return { ...arranged, recorder, connection: await arranged.peer.connection() }
  }

  describe(adapter.name, () => {
    for (const [status, kind] of [
      [400, 'refused'],
      [401, 'refused'],
      [403, 'refused'],
      [404, 'refused'],
      [429, 'busy'],
      [503, 'busy'],
      [500, 'unreachable'],
    ] as const) {
      test(`an upgrade refused with ${status} fails as ${kind}`, async () => {
        const { engine } = arrange({ refuse: status })
        const message = `the server responded with status ${status}`
        await expect(openSession(engine)).rejects.toMatchObject({ kind, message })
      })
    }

    test('a stopped server is unreachable', async () => {
      const { peer, engine } = arrange()
      await peer.stop()
      await expect(openSession(engine)).rejects.toMatchObject({ kind: 'unreachable' })
    })

    test('a slow upgrade succeeds; a missing one times out', async () => {
      const slow = arrange({ upgradeDelayMs: 50 })
      const recorder = await openSession(slow.engine)
      recorder.session.abort()

      const silent = arrange({ silent: true }, { openMs: 40 })
      const error = { kind: 'unreachable', message: 'it was not ready within 40 ms' }
      await expect(openSession(silent.engine)).rejects.toMatchObject(error)
    })

    test('cancelled opening leaves no connection', async () => {
      const { peer, engine } = arrange({ upgradeDelayMs: 30 })
      const controller = new AbortController()
      const opening = openSession(engine, { signal: controller.signal })
      await eventually('the upgrade was requested', () => peer.requests.length === 1)
      controller.abort()
      await expect(opening).rejects.toMatchObject({ kind: 'unreachable' })
      await expect(openSession(engine, { signal: controller.signal })).rejects.toMatchObject({
        kind: 'unreachable',
      })
      expect(peer.requests).toHaveLength(1)
      await eventually('every connection is closed', () =>
        peer.connections.every(({ closed }) => closed !== null),
      )
    })

    test('abort closes the connection without events, at every stage and twice', async () => {
      for (const stage of ['ready', 'speaking', 'finalizing', 'ending'] as const) {
        const { engine, recorder, connection } = await converse()
        if (stage !== 'ready') recorder.session.write(tone(1_000, engine.sampleRateHz))
        if (stage === 'finalizing') recorder.session.finalize()
        if (stage === 'ending') recorder.session.end()
        recorder.session.abort()
        recorder.session.abort()
        recorder.session.write(tone(200, engine.sampleRateHz))
        recorder.session.finalize()
        recorder.session.end()
        const before = recorder.events.length
        await eventually('the server sees the close', () => connection.closed !== null)
        expect(recorder.events).toHaveLength(before)
        expect(recorder.of('failed')).toEqual([])
      }
    })

    for (const [what, frame] of [
      ['invalid JSON', '{"type": "Resul'],
      ['JSON other than an object', '[1, 2]'],
      ['a binary frame', new Uint8Array(8)],
      ['an oversized frame', `{"text":"${'x'.repeat(1_100_000)}"}`],
    ] as const) {
      test(`${what} from the server fails the session as broken`, async () => {
        const { recorder, connection } = await converse()
        connection.sendRaw(frame)
        await recorder.waitFor('failed')
        expect(recorder.of('failed')[0]?.error.kind).toBe('broken')
        await eventually('the connection is closed', () => connection.closed !== null)
      })
    }

    for (const [code, kind] of [
      [1000, 'broken'],
      [1001, 'broken'],
      [1008, 'refused'],
      [1011, 'broken'],
      [1013, 'busy'],
      [4401, 'refused'],
      [4429, 'busy'],
    ] as const) {
      test(`close code ${code} fails the session as ${kind} and logs the reason`, async () => {
        const { engine, deps, recorder, connection } = await converse({ key: 'very-secret' })
        recorder.session.write(tone(500, engine.sampleRateHz))
        connection.close(code, `because very-secret`)
        await recorder.waitFor('failed')
        expect(recorder.of('failed')[0]?.error).toMatchObject({
          kind,
          message: `the server closed with ${code}: because [redacted]`,
        })
        expect(deps.lines.join('\n')).toContain(`closed with ${code}: because [redacted]`)
        expect(deps.lines.join('\n')).not.toContain('very-secret')
      })
    }

    test('a lost connection fails the session as broken, also while it ends', async () => {
      for (const isEnding of [false, true]) {
        const { engine, recorder, connection } = await converse()
        recorder.session.write(tone(500, engine.sampleRateHz))
        if (isEnding) recorder.session.end()
        connection.vanish()
        await recorder.waitFor('failed')
        expect(recorder.of('failed')[0]?.error.kind).toBe('broken')
      }
    })

    test('a server that stops reading fails before memory fills up', async () => {
      const { engine, recorder, connection } = await converse()
      connection.stopReading()
      const minute = tone(60_000, engine.sampleRateHz)
      for (let at = 0; at < 60 && recorder.of('failed').length === 0; at += 1) {
        recorder.session.write(minute)
        // The failure is emitted after the call that caused it, never inside.
        expect(recorder.of('failed')).toEqual([])
        await Bun.sleep(0)
      }
      await recorder.waitFor('failed')
      expect(recorder.of('failed')[0]?.error.kind).toBe('broken')
      connection.vanish()
    })
  })
}
