import { afterEach, describe, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { createDeepgramEngine } from '#speech/engines/deepgram.ts'
import { createOpenAiRealtimeEngine } from '#speech/engines/openai-realtime/engine.ts'
import { createVoskEngine } from '#speech/engines/vosk.ts'
import { engineConfig, engineDeps, openSession, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Peer, type PeerScript, startPeer } from '#test/support/scripted-engines/peer.ts'

/** What every adapter owes when its server does not behave, whatever the server speaks. */
const adapters = [
  { name: 'vosk', kind: 'vosk', create: createVoskEngine },
  { name: 'deepgram', kind: 'deepgram', create: createDeepgramEngine },
  ...(['ga', 'beta', 'vllm', 'nemo'] as const).map((dialect) => ({
    name: `openai-realtime ${dialect}`,
    kind: 'openai-realtime' as const,
    dialect,
    create: createOpenAiRealtimeEngine,
  })),
] as const

const peers: Peer[] = []

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

/** A server that says no more than what makes a session ready. */
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
  // Vosk knows no greeting: whatever a server says unasked is an answer to nothing.
  const greets = adapter.kind === 'vosk' ? { opened: () => {} } : {}
  const arrange = (script: PeerScript = {}, given: Partial<EngineConfig> = {}) => {
    const peer = startPlainPeer({ ...greets, ...script })
    const deps = engineDeps()
    const { create, name: _, ...rest } = adapter
    const config = engineConfig({ ...rest, url: peer.url, ...given })
    return { peer, deps, engine: create(config, deps) }
  }
  const converse = async (given: Partial<EngineConfig> = {}) => {
    const arranged = arrange({}, given)
    const heard = await openSession(arranged.engine)
    return { ...arranged, heard, connection: await arranged.peer.connection() }
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
      test(`an upgrade that is answered with ${status} is ${kind}`, async () => {
        const { engine } = arrange({ refuse: status })
        const message = `the server answered with status ${status}`
        await expect(openSession(engine)).rejects.toMatchObject({ kind, message })
      })
    }

    test('a server that is not there is unreachable', async () => {
      const { peer, engine } = arrange()
      await peer.stop()
      await expect(openSession(engine)).rejects.toMatchObject({ kind: 'unreachable' })
    })

    test('a slow upgrade is waited for, a missing one only for so long', async () => {
      const slow = arrange({ upgradeDelayMs: 50 })
      const heard = await openSession(slow.engine)
      heard.session.abort()

      const silent = arrange({ silent: true }, { openMs: 40 })
      const error = { kind: 'unreachable', message: 'it was not ready within 40 ms' }
      await expect(openSession(silent.engine)).rejects.toMatchObject(error)
    })

    test('an opening that is given up leaves no connection', async () => {
      const { peer, engine } = arrange({ upgradeDelayMs: 30 })
      const giveUp = new AbortController()
      const opening = openSession(engine, { signal: giveUp.signal })
      await eventually('it was asked for', () => peer.requests.length === 1)
      giveUp.abort()
      await expect(opening).rejects.toMatchObject({ kind: 'unreachable' })
      await expect(openSession(engine, { signal: giveUp.signal })).rejects.toMatchObject({
        kind: 'unreachable',
      })
      expect(peer.requests).toHaveLength(1)
      await eventually('nothing is left open', () =>
        peer.connections.every(({ closed }) => closed !== null),
      )
    })

    test('abort closes the connection and is silent, at every stage and twice', async () => {
      for (const stage of ['ready', 'speaking', 'finalizing', 'ending'] as const) {
        const { engine, heard, connection } = await converse()
        if (stage !== 'ready') heard.session.write(tone(1_000, engine.sampleRateHz))
        if (stage === 'finalizing') heard.session.finalize()
        if (stage === 'ending') heard.session.end()
        heard.session.abort()
        heard.session.abort()
        heard.session.write(tone(200, engine.sampleRateHz))
        heard.session.finalize()
        heard.session.end()
        const before = heard.events.length
        await eventually('the server sees the close', () => connection.closed !== null)
        expect(heard.events).toHaveLength(before)
        expect(heard.of('failed')).toEqual([])
      }
    })

    for (const [what, frame] of [
      ['text that is no JSON', '{"type": "Resul'],
      ['JSON that is no object', '[1, 2]'],
      ['binary', new Uint8Array(8)],
      ['a frame beyond all measure', `{"text":"${'x'.repeat(1_100_000)}"}`],
    ] as const) {
      test(`${what} from the server ends the session as broken`, async () => {
        const { heard, connection } = await converse()
        connection.sendRaw(frame)
        await heard.told('failed')
        expect(heard.of('failed')[0]?.error.kind).toBe('broken')
        await eventually('the connection is gone', () => connection.closed !== null)
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
      test(`a close with ${code} ends the session as ${kind}, and its reason is logged`, async () => {
        const { engine, deps, heard, connection } = await converse({ key: 'very-secret' })
        heard.session.write(tone(500, engine.sampleRateHz))
        connection.close(code, `because very-secret`)
        await heard.told('failed')
        expect(heard.of('failed')[0]?.error).toMatchObject({
          kind,
          message: `the server closed with ${code}: because [redacted]`,
        })
        expect(deps.lines.join('\n')).toContain(`closed with ${code}: because [redacted]`)
        expect(deps.lines.join('\n')).not.toContain('very-secret')
      })
    }

    test('a server that vanishes ends the session as broken, also while it ends', async () => {
      for (const isEnding of [false, true]) {
        const { engine, heard, connection } = await converse()
        heard.session.write(tone(500, engine.sampleRateHz))
        if (isEnding) heard.session.end()
        connection.vanish()
        await heard.told('failed')
        expect(heard.of('failed')[0]?.error.kind).toBe('broken')
      }
    })

    test('a server that stops reading is given up before memory is filled', async () => {
      const { engine, heard, connection } = await converse()
      connection.stopReading()
      const minute = tone(60_000, engine.sampleRateHz)
      for (let at = 0; at < 60 && heard.of('failed').length === 0; at += 1) {
        heard.session.write(minute)
        // The failure is told after the call that met it, never inside.
        expect(heard.of('failed')).toEqual([])
        await Bun.sleep(0)
      }
      await heard.told('failed')
      expect(heard.of('failed')[0]?.error.kind).toBe('broken')
      connection.vanish()
    })
  })
}
