import { describe, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { createGatedEngine } from '#test/support/gated-engine.ts'
import { passTime } from '#test/support/passing-time.ts'
import { createScriptedEngine } from '#test/support/scripted-engine.ts'
import { openSpeech, pcmBytes, type SpeechClient } from '#test/support/speech-client.ts'
import { speak } from '#test/support/spoken-numbers.ts'
import { bytes, nothingIsLeft, say, wordsSaid } from './said.ts'
import { serveSpeech } from './served-speech.ts'

/** Engine failures, capacity and shutdown. */

const speechServers = serveSpeech()
const { start, begin } = speechServers

describe('an engine', () => {
  const failing = (script: object) => createScriptedEngine({ scripts: Array(20).fill(script) })

  test('that cannot be opened fails the session', async () => {
    const server = start({ engines: [failing({ refusal: 'unreachable' })] })
    const client = await openSpeech(server.port, { token: speechServers.token })
    client.send({})
    expect(await client.refusal()).toMatchObject({ code: 'engine_failed', closeCode: 1011 })
    expect(client.frames().length).toBe(1)
    await nothingIsLeft(server)
  })

  test.each([
    ['finalize_timeout', 22, { finalizeMs: 100 }],
    // The queue is full, so that the end of the client is not read.
    ['engine_stalled', 60, { engineStallMs: 300 }],
  ] as const)('that never answers lags, then fails with %s', async (code, words, speech) => {
    const engines = [failing({ stallAtMs: 0 })]
    const server = start({ engines, speech: { ...speech, lagMsMax: 1_000 } })
    const client = await openSpeech(server.port, { token: speechServers.token })
    await client.start({})
    client.sendAudio(pcmBytes(speak([{ silenceMs: 200, words }]).samples))
    const warnings = () => client.of('warning').map((frame) => frame.code)
    await eventually('the lag is reported', () => warnings().includes('engine_lagging'))
    client.send({ type: 'session_end' })
    expect(await client.refusal()).toMatchObject({ code, closeCode: 1011 })
    expect(client.of('error')[0]?.stats?.max_lag_ms).toBeGreaterThanOrEqual(2_000)
    await nothingIsLeft(server)
  })

  test('at capacity is reported as retryable', async () => {
    const server = start({ engines: [createScriptedEngine({ sessionsMax: 1 })] })
    const first = await begin(server)
    const second = await openSpeech(server.port, { token: speechServers.token })
    second.send({})
    expect(await second.refusal()).toMatchObject({
      code: 'capacity',
      closeCode: 1013,
      details: { limit: 'engine', retry_after_ms: 1_000 },
    })
    await first.end()
    await (await begin(server)).end()
  })

  test('that fails repeatedly ends the session with statistics', async () => {
    const engine = failing({ crashAtMs: 300 })
    const server = start({ engines: [engine], speech: { rolloversMax: 0 } })
    const client = await begin(server)
    client.sendAudio(bytes)
    expect(await client.refusal()).toMatchObject({ code: 'engine_failed', closeCode: 1011 })
    const stats = client.of('error')[0]?.stats
    expect(stats?.received_bytes).toBe(bytes.length)
    expect(stats?.untranscribed_ms).toBeGreaterThan(0)
    await nothingIsLeft(server)
  })

  test('that stalls ends the session', async () => {
    const engine = failing({ stallAtMs: 300 })
    const speechSettings = { engineStallMs: 200, rolloversMax: 0 }
    const server = start({ engines: [engine], speech: speechSettings })
    const client = await begin(server)
    for (let times = 0; times < 3; times++) client.sendAudio(bytes)
    expect(await client.refusal()).toMatchObject({ code: 'engine_stalled', closeCode: 1011 })
    await nothingIsLeft(server)
    expect(engine.running()).toBe(0)
  })

  test('that never ends times out', async () => {
    const server = start({ engines: [failing({ isEndless: true })], speech: { finalizeMs: 200 } })
    const client = await begin(server)
    client.sendAudio(bytes)
    client.send({ type: 'session_end' })
    expect(await client.refusal()).toMatchObject({ code: 'finalize_timeout', closeCode: 1011 })
    await nothingIsLeft(server)
  })
})

describe('capacity', () => {
  test('is limited per worker and released by each ending', async () => {
    const server = start({ speech: { sessionsMax: 2 } })
    const [first, second] = [await begin(server), await begin(server)]
    const other = await speechServers.tokenOf('another-user')
    const third = await openSpeech(server.port, { token: other })
    expect(await third.refusal()).toMatchObject({
      code: 'capacity',
      closeCode: 1013,
      details: { limit: 'sessions', retry_after_ms: 1_000 },
    })
    await first.end()
    await second.end()
    await (await begin(server)).end()
    await nothingIsLeft(server)
  })

  test('is limited per user', async () => {
    const server = start({ speech: { sessionsPerUserMax: 1 } })
    const own = await begin(server)
    const second = await openSpeech(server.port, { token: speechServers.token })
    second.send({})
    expect(await second.refusal()).toMatchObject({
      code: 'capacity',
      details: { limit: 'sessions_of_user' },
    })
    const other = await speechServers.tokenOf('another-user')
    const others = await openSpeech(server.port, { token: other })
    await others.start()
    await others.end()
    await own.end()
  })

  test('is not held by clients that send nothing', async () => {
    const server = start({ speech: { sessionsPerUserMax: 2 } })
    const mute = [
      await openSpeech(server.port, { token: speechServers.token }),
      await openSpeech(server.port, { token: speechServers.token }),
    ]
    const crowded = await openSpeech(server.port, { token: speechServers.token })
    expect(await crowded.refusal()).toMatchObject({ code: 'capacity' })
    for (const client of mute) await client.arrived()
    passTime(server.settings.handshakeMs)
    for (const client of mute) expect((await client.refusal()).code).toBe('handshake_timeout')
    await (await begin(server)).end()
  })

  test('is fully released by hundreds of sessions with different endings', async () => {
    const server = start({ speech: { resumeMs: 0 } })
    const leave = [
      (client: SpeechClient) => client.socket.destroy(),
      (client: SpeechClient) => client.send({ type: 'session_end' }),
      (client: SpeechClient) => client.sendFrame(8, new Uint8Array([0x03, 0xe8])),
      (client: SpeechClient) => client.sendFrame(1, 'nonsense'),
    ]
    await Promise.all(
      Array.from({ length: 80 }, async (_, at) => {
        const client = await openSpeech(server.port, { token: speechServers.token })
        if (at % 5 > 0) client.send({})
        if (at % 5 > 1) client.sendAudio(bytes)
        if (at % 5 > 2) await client.waitFor('session_ready')
        leave[at % leave.length]?.(client)
      }),
    )
    await eventually('all sessions have ended', () => server.sessions.metrics().sessions === 0)
  })
})

describe('a draining process', () => {
  test('finishes the received audio of each session and closes with 1001', async () => {
    const engine = createGatedEngine(createScriptedEngine())
    const server = start({ engines: [engine] })
    const [busy, silent] = [
      await begin(server),
      await openSpeech(server.port, { token: speechServers.token }),
    ]
    await say(busy)
    await eventually('both sockets are registered', () => server.openSockets() === 2)
    server.drain()
    expect(await silent.refusal()).toMatchObject({ code: 'draining', closeCode: 1001 })
    expect(server.busySockets()).toBe(1)
    engine.release()
    expect(await busy.refusal()).toMatchObject({ code: 'draining', closeCode: 1001 })
    expect(busy.finals()).toEqual([wordsSaid])
    expect(busy.of('error')[0]).toMatchObject({
      error: { retryable: true },
      stats: { audio_ms: 800, untranscribed_ms: 0 },
    })
    await nothingIsLeft(server)
  })

  test('lets a speaker finish, and accepts nothing after the pause', async () => {
    const server = start()
    const client = await begin(server)
    await say(client)
    server.drain()
    client.sendAudio(pcmBytes(speak([{ silenceMs: 0, words: 4 }], 1_000).samples))
    const ignored = setInterval(() => client.sendAudio(bytes), 50)
    expect(await client.refusal()).toMatchObject({ code: 'draining', closeCode: 1001 })
    clearInterval(ignored)
    expect(client.finals().join(' ')).toStartWith(`${wordsSaid} 1 2 3 4`)
    expect(client.of('error')[0]).toMatchObject({ stats: { untranscribed_ms: 0 } })
    await nothingIsLeft(server)
  })

  test('does not wait for an engine beyond the deadline', async () => {
    const engine = createGatedEngine(createScriptedEngine())
    const server = start({ engines: [engine] })
    const client = await begin(server)
    await say(client)
    server.drain()
    passTime(server.settings.finalizeMs)
    expect(await client.refusal()).toMatchObject({ code: 'draining', closeCode: 1001 })
    expect(client.of('error')[0]?.stats?.untranscribed_ms).toBeGreaterThan(0)
    await nothingIsLeft(server)
  })

  test('ends sessions without a client and accepts no new ones', async () => {
    const engine = createScriptedEngine()
    const server = start({ engines: [engine] })
    const client = await begin(server)
    client.socket.destroy()
    await eventually(
      'the session waits for its client',
      () => server.sessions.metrics().waiting === 1,
    )
    server.drain()
    server.sessions.close()
    expect(server.sessions.metrics().sessions).toBe(0)
    expect(engine.running()).toBe(0)
    const late = await openSpeech(server.port, { token: speechServers.token })
    expect(await late.refusal()).toMatchObject({ code: 'draining', closeCode: 1001 })
  })
})
