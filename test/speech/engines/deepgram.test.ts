import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { deepgramKind } from '#speech/engines/deepgram.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps, openSession, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  type DeepgramPeer,
  type DeepgramScript,
  startDeepgramPeer,
} from '#test/support/scripted-engines/deepgram-peer.ts'

const peers: DeepgramPeer[] = []
const rate = 16_000
const quick = { keepAliveMs: 20, finalizeMs: 30, slowFinalizeMs: 60 }

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

function arrange(script: DeepgramScript = {}, given: Partial<EngineConfig> = {}) {
  const peer = startDeepgramPeer(script)
  peers.push(peer)
  const deps = engineDeps()
  const config = engineConfig({ kind: 'deepgram', url: peer.url, ...given })
  return { peer, deps, config, engine: createEngine(config, deps) }
}

test('speech becomes partials, then finals with words, times and confidence', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  for (let at = 0; at < 100; at += 1) recorder.session.write(tone(20, rate))
  await recorder.waitFor('final', 2)

  expect(recorder.of('partial')[0]).toMatchObject({ text: 'W1 w2', startMs: 0, endMs: 500 })
  expect(recorder.of('final')[1]).toMatchObject({
    text: 'W5 w6 w7 w8',
    startMs: 1_000,
    endMs: 2_000,
    confidence: 0.75,
    speechFinal: true,
  })
  expect(recorder.of('final')[1]?.words[0]).toEqual({
    word: 'W5',
    startMs: 1_000,
    endMs: 1_250,
    confidence: 0.75,
  })
  expect(recorder.of('speech-start').map(({ atMs }) => atMs)).toEqual([0, 1_000])
  expect(recorder.of('progress').at(-1)).toMatchObject({ processedMs: 2_000, estimated: true })
  expect(new Set(peer.received().frames)).toEqual(new Set([3_200]))
  recorder.session.abort()
})

test('language, model, endpointing and sample rate are set in the URL', async () => {
  const { peer, engine } = arrange({}, { model: 'nova-3', sampleRateHz: 8_000 })
  const recorder = await openSession(engine, {
    language: 'cs',
    vocabulary: ['Sluice', 'Brno'],
    endpointingMs: 300,
  })
  const { url } = (await peer.connection()).request
  expect(url.pathname).toBe('/v1/listen')
  expect(url.searchParams.getAll('keyterm')).toEqual(['Sluice', 'Brno'])
  url.searchParams.delete('keyterm')
  expect(Object.fromEntries(url.searchParams)).toEqual({
    language: 'cs',
    model: 'nova-3',
    encoding: 'linear16',
    sample_rate: '8000',
    channels: '1',
    interim_results: 'true',
    punctuate: 'true',
    endpointing: '300',
    utterance_end_ms: '1000',
    vad_events: 'true',
  })
  recorder.session.abort()
})

test('utterance_end_ms stays within the range of every server', async () => {
  for (const [endpointingMs, expected] of Object.entries({ 100: 1000, 2500: 2500, 10000: 5000 })) {
    const { peer, engine } = arrange({ lookaheadMs: 0 })
    const recorder = await openSession(engine, { endpointingMs: Number(endpointingMs) })
    const { searchParams } = (await peer.connection()).request.url
    expect(searchParams.get('utterance_end_ms')).toBe(String(expected))
    recorder.session.write(tone(1_000, rate))
    await recorder.waitFor('final')
    recorder.session.abort()
  }
})

test('progress continues while the server returns nothing, at the configured pace', async () => {
  const { peer, engine } = arrange({ mute: true }, { paceMax: 8 })
  const recorder = await openSession(engine)
  recorder.session.write(tone(2_000, rate))
  await recorder.waitFor('progress', 2)
  expect(recorder.of('progress')[0]?.processedMs).toBeLessThan(2_000)
  const processedMs = () => recorder.of('progress').at(-1)?.processedMs
  await eventually('all audio counts as processed', () => processedMs() === 2_000)
  expect(peer.received().audioMs).toBe(2_000)
  recorder.session.abort()
})

test('a server that refuses finalize fails once as at its limit, then is finalized by ending', async () => {
  const { peer, engine } = arrange({ lookaheadMs: 500 })
  const first = await openSession(engine)
  expect(first.session.finalizesByEnding?.()).toBe(false)
  first.session.write(tone(1_000, rate))
  first.session.finalize()
  await first.waitFor('failed')
  expect(first.of('failed')[0]?.error.kind).toBe('limit')

  const second = await openSession(engine)
  expect(second.session.finalizesByEnding?.()).toBe(true)
  second.session.write(tone(1_000, rate))
  second.session.end()
  await second.waitFor('ended')
  expect(second.finals()).toEqual(['W1 w2 w3 w4'])
  expect(peer.received(1).commands).toEqual(['CloseStream'])
})

test('metadata of the start does not end a session whose end was requested early', async () => {
  const { peer, engine } = arrange({ mute: true })
  const recorder = await openSession(engine)
  recorder.session.write(tone(1_000, rate))
  recorder.session.end()
  const connection = await peer.connection()
  connection.send({ type: 'Metadata', request_id: 'r', duration: 0 })
  const alternatives = [{ transcript: 'kept', confidence: 0, words: [] }]
  const results = { type: 'Results', start: 0, duration: 0, is_final: true }
  connection.send({ ...results, channel: { alternatives } })
  connection.send({ type: 'Metadata', request_id: 'r', duration: 1 })
  await recorder.waitFor('ended')
  expect(recorder.of('final')).toMatchObject([{ text: 'kept', startMs: null, endMs: null }])
})

test('query parameters of the configured URL take precedence', async () => {
  const peer = startDeepgramPeer()
  peers.push(peer)
  const url = `${peer.url.replace('ws:', 'http:')}/v1/listen?language=multi&tier=x`
  const engine = createEngine(engineConfig({ kind: 'deepgram', url }), engineDeps())
  const recorder = await openSession(engine)

  const { searchParams } = (await peer.connection()).request.url
  expect(searchParams.getAll('language')).toEqual(['multi'])
  expect(searchParams.get('tier')).toBe('x')
  recorder.session.abort()
})

test('the credential is sent as a token, and a wrong one is refused', async () => {
  const right = arrange({ key: 'k-1' }, { key: 'k-1' })
  const recorder = await openSession(right.engine)
  recorder.session.abort()

  const wrong = arrange({ key: 'k-1' }, { key: 'k-2' })
  await expect(openSession(wrong.engine)).rejects.toMatchObject({ kind: 'refused' })
})

test('finalize is answered after the finals', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.write(tone(600, rate))
  recorder.session.finalize()
  await recorder.waitFor('finalized')

  expect(recorder.of('final')).toMatchObject([{ text: 'W1 w2', speechFinal: false }])
  const kinds = recorder.events.map(({ type }) => type)
  expect(kinds.indexOf('finalized')).toBeGreaterThan(kinds.indexOf('final'))
  recorder.session.finalize()
  await recorder.waitFor('finalized', 2)
  expect(peer.received().commands).toEqual(['Finalize'])
  recorder.session.abort()
})

test('an unanswered finalize times out if no utterance is open', async () => {
  const { config, deps } = arrange({ mute: true })
  const recorder = await openSession(deepgramKind(quick).create(config, deps))
  recorder.session.write(tone(200, rate))
  recorder.session.finalize()
  await recorder.waitFor('finalized')
  expect(recorder.finals()).toEqual([])
  recorder.session.abort()
})

test('finalize waits for the final of an open utterance', async () => {
  const { peer, config, deps } = arrange({ mute: true })
  const recorder = await openSession(deepgramKind(quick).create(config, deps))
  recorder.session.write(tone(500, rate))
  recorder.session.finalize()
  const connection = await peer.connection()
  const alternatives = [{ transcript: 'late', confidence: 0.5, words: [] }]
  const results = { type: 'Results', start: 0, duration: 0.4, channel: { alternatives } }
  connection.send({ ...results, is_final: false })
  await recorder.waitFor('partial')
  await Bun.sleep(quick.finalizeMs * 3)
  connection.send({ ...results, is_final: true })
  await recorder.waitFor('finalized')

  const kinds = recorder.events.map(({ type }) => type).filter((type) => type !== 'progress')
  expect(kinds).toEqual(['partial', 'final', 'finalized'])
  expect(recorder.of('final')[0]).toMatchObject({ text: 'late', startMs: 0, endMs: 400 })
  recorder.session.abort()
})

test('end returns the remaining finals before the ending', async () => {
  const { peer, engine } = arrange()
  const recorder = await openSession(engine)
  recorder.session.write(tone(1_570, rate))
  recorder.session.end()
  await recorder.waitFor('ended')

  expect(recorder.finals()).toEqual(['W1 w2 w3 w4', 'W5 w6'])
  expect(peer.received()).toMatchObject({ audioMs: 1_570, commands: ['CloseStream'] })
  expect(recorder.of('progress').at(-1)?.processedMs).toBe(1_570)
})

test('finalize followed by end answers both', async () => {
  const { peer, engine } = arrange({ mute: true })
  const recorder = await openSession(engine)
  recorder.session.write(tone(300, rate))
  recorder.session.finalize()
  recorder.session.end()
  const connection = await peer.connection()
  await eventually('both were requested', () => connection.texts.length === 2)
  connection.send({ type: 'Metadata', request_id: 'r' })
  await recorder.waitFor('ended')
  const kinds = recorder.events.map(({ type }) => type).filter((type) => type !== 'progress')
  expect(kinds).toEqual(['finalized', 'ended'])
})

test('a close without metadata ends the session if all results arrived, else fails it', async () => {
  const answered = arrange({ abrupt: true })
  const one = await openSession(answered.engine)
  one.session.write(tone(1_570, rate))
  one.session.end()
  await one.waitFor('ended')

  const silent = arrange({ abrupt: true, mute: true })
  const other = await openSession(silent.engine)
  other.session.write(tone(1_000, rate))
  other.session.end()
  const connection = await silent.peer.connection()
  await eventually('the end was requested', () => connection.texts.length > 0)
  connection.close(1000)
  await other.waitFor('failed')
  expect(other.of('failed')[0]?.error.kind).toBe('broken')
})

test('keepalives are sent during a pause', async () => {
  const { peer, config, deps } = arrange({ idleMs: 30_000 })
  const recorder = await openSession(deepgramKind(quick).create(config, deps))
  await eventually('keepalives were received', () => peer.received().commands.length >= 20)

  expect(new Set(peer.received().commands)).toEqual(new Set(['KeepAlive']))
  expect(recorder.events).toEqual([])
  recorder.session.abort()
  const connection = await peer.connection()
  await eventually('the connection is closed', () => connection.closed !== null)
})

test('close code 1011 fails the session and logs the reason', async () => {
  const { engine, deps } = arrange({ idleMs: 20 })
  const recorder = await openSession(engine)
  await recorder.waitFor('failed')

  expect(recorder.of('failed')[0]?.error.kind).toBe('broken')
  expect(deps.lines.join('\n')).toContain('NET-0001')
})

test('finals without text withdraw their partials', async () => {
  const { engine } = arrange({ deaf: true })
  const recorder = await openSession(engine)
  recorder.session.write(tone(1_000, rate))
  await recorder.waitFor('utterance-dropped')
  expect(recorder.finals()).toEqual([])
  recorder.session.abort()
})

test('early metadata, warnings and unknown frames are ignored; an error fails the session', async () => {
  const { peer, engine, deps } = arrange()
  const recorder = await openSession(engine)
  const connection = await peer.connection()
  connection.sendTogether([
    { type: 'Metadata', request_id: 'r' },
    { type: 'Warning', description: 'mind the gap' },
    { type: 'Surprise' },
  ])
  recorder.session.write(tone(1_000, rate))
  await recorder.waitFor('final')
  expect(deps.lines.join('\n')).toContain('mind the gap')
  connection.send({ type: 'Error', description: 'out of models' })
  await recorder.waitFor('failed')
  expect(recorder.of('failed')[0]?.error.message).toContain('out of models')
})
