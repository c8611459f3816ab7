import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { createDeepgramEngine } from '#speech/engines/deepgram.ts'
import { engineConfig, engineDeps, openSession, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  type DeepgramPeer,
  type DeepgramScript,
  startDeepgramPeer,
} from '#test/support/scripted-engines/deepgram-peer.ts'

const peers: DeepgramPeer[] = []
const rate = 16_000
const quick = { keepAliveMs: 20, finalizeMs: 30 }

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

function arrange(script: DeepgramScript = {}, given: Partial<EngineConfig> = {}) {
  const peer = startDeepgramPeer(script)
  peers.push(peer)
  const deps = engineDeps()
  const config = engineConfig({ kind: 'deepgram', url: peer.url, ...given })
  return { peer, deps, config, engine: createDeepgramEngine(config, deps) }
}

test('speech becomes partials, then finals with words, times and confidence', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  for (let at = 0; at < 100; at += 1) heard.session.write(tone(20, rate))
  await heard.told('final', 2)

  expect(heard.of('partial')[0]).toEqual({ type: 'partial', text: 'W1 w2', startMs: 0, endMs: 500 })
  expect(heard.of('final')[1]).toMatchObject({
    text: 'W5 w6 w7 w8',
    startMs: 1_000,
    endMs: 2_000,
    confidence: 0.75,
    speechFinal: true,
  })
  expect(heard.of('final')[1]?.words[0]).toEqual({
    word: 'W5',
    startMs: 1_000,
    endMs: 1_250,
    confidence: 0.75,
  })
  expect(heard.of('speech-start').map(({ atMs }) => atMs)).toEqual([0, 1_000])
  expect(heard.of('progress').map(({ processedMs }) => processedMs)).toEqual([
    500, 1_000, 1_500, 2_000,
  ])
  expect(heard.of('progress').some(({ estimated }) => estimated)).toBe(false)
  expect(new Set(peer.heard().frames)).toEqual(new Set([3_200]))
  heard.session.abort()
})

test('language, model, pauses and the rate are asked for in the URL', async () => {
  const { peer, engine } = arrange({}, { model: 'nova-3', sampleRateHz: 8_000 })
  const heard = await openSession(engine, {
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
  heard.session.abort()
})

test('what the operator wrote into the URL wins', async () => {
  const peer = startDeepgramPeer()
  peers.push(peer)
  const url = `${peer.url.replace('ws:', 'http:')}/v1/listen?language=multi&tier=x`
  const engine = createDeepgramEngine(engineConfig({ kind: 'deepgram', url }), engineDeps())
  const heard = await openSession(engine)

  const { searchParams } = (await peer.connection()).request.url
  expect(searchParams.getAll('language')).toEqual(['multi'])
  expect(searchParams.get('tier')).toBe('x')
  heard.session.abort()
})

test('the credential goes as a token, and a wrong one is refused', async () => {
  const right = arrange({ key: 'k-1' }, { key: 'k-1' })
  const heard = await openSession(right.engine)
  heard.session.abort()

  const wrong = arrange({ key: 'k-1' }, { key: 'k-2' })
  await expect(openSession(wrong.engine)).rejects.toMatchObject({ kind: 'refused' })
})

test('finalize is answered after the finals of what was said', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.write(tone(600, rate))
  heard.session.finalize()
  await heard.told('finalized')

  expect(heard.of('final')).toMatchObject([{ text: 'W1 w2', speechFinal: false }])
  const kinds = heard.events.map(({ type }) => type)
  expect(kinds.indexOf('finalized')).toBeGreaterThan(kinds.indexOf('final'))
  heard.session.finalize()
  await heard.told('finalized', 2)
  expect(peer.heard().commands).toEqual(['Finalize'])
  heard.session.abort()
})

test('finalize without an answer is given up where no text is open', async () => {
  const { config, deps } = arrange({ mute: true })
  const heard = await openSession(createDeepgramEngine(config, deps, quick))
  heard.session.write(tone(200, rate))
  heard.session.finalize()
  await heard.told('finalized')
  expect(heard.finals()).toEqual([])
  heard.session.abort()
})

test('finalize waits for the final of a text that is open', async () => {
  const { peer, config, deps } = arrange({ mute: true })
  const heard = await openSession(createDeepgramEngine(config, deps, quick))
  heard.session.write(tone(500, rate))
  heard.session.finalize()
  const connection = await peer.connection()
  const alternatives = [{ transcript: 'late', confidence: 0.5, words: [] }]
  const results = { type: 'Results', start: 0, duration: 0.4, channel: { alternatives } }
  connection.send({ ...results, is_final: false })
  await heard.told('partial')
  await Bun.sleep(quick.finalizeMs * 3)
  connection.send({ ...results, is_final: true })
  await heard.told('finalized')

  const kinds = heard.events.map(({ type }) => type).filter((type) => type !== 'progress')
  expect(kinds).toEqual(['partial', 'final', 'finalized'])
  expect(heard.of('final')[0]).toMatchObject({ text: 'late', startMs: 0, endMs: 400 })
  heard.session.abort()
})

test('the end brings the rest, and only then the ending', async () => {
  const { peer, engine } = arrange()
  const heard = await openSession(engine)
  heard.session.write(tone(1_570, rate))
  heard.session.end()
  await heard.told('ended')

  expect(heard.finals()).toEqual(['W1 w2 w3 w4', 'W5 w6'])
  expect(peer.heard()).toMatchObject({ audioMs: 1_570, commands: ['CloseStream'] })
  expect(heard.of('progress').at(-1)?.processedMs).toBe(1_570)
})

test('an end that follows finalize leaves neither without an answer', async () => {
  const { peer, engine } = arrange({ mute: true })
  const heard = await openSession(engine)
  heard.session.write(tone(300, rate))
  heard.session.finalize()
  heard.session.end()
  const connection = await peer.connection()
  await eventually('both are asked for', () => connection.texts.length === 2)
  connection.send({ type: 'Metadata', request_id: 'r' })
  await heard.told('ended')
  expect(heard.events.map(({ type }) => type)).toEqual(['finalized', 'ended'])
})

test('a server that closes without its last word has ended where all was answered, else failed', async () => {
  const answered = arrange({ abrupt: true })
  const one = await openSession(answered.engine)
  one.session.write(tone(1_570, rate))
  one.session.end()
  await one.told('ended')

  const silent = arrange({ abrupt: true, mute: true })
  const other = await openSession(silent.engine)
  other.session.write(tone(1_000, rate))
  other.session.end()
  const connection = await silent.peer.connection()
  await eventually('the end is asked for', () => connection.texts.length > 0)
  connection.close(1000)
  await other.told('failed')
  expect(other.of('failed')[0]?.error.kind).toBe('broken')
})

test('a pause is bridged by keepalives', async () => {
  const { peer, config, deps } = arrange({ idleMs: 300 })
  const heard = await openSession(createDeepgramEngine(config, deps, quick))
  await eventually('keepalives have come', () => peer.heard().commands.length >= 20)

  expect(new Set(peer.heard().commands)).toEqual(new Set(['KeepAlive']))
  expect(heard.events).toEqual([])
  heard.session.abort()
  const connection = await peer.connection()
  await eventually('the connection is gone', () => connection.closed !== null)
})

test('a close with 1011 fails, and its reason is in the log', async () => {
  const { engine, deps } = arrange({ idleMs: 20 })
  const heard = await openSession(engine)
  await heard.told('failed')

  expect(heard.of('failed')[0]?.error.kind).toBe('broken')
  expect(deps.lines.join('\n')).toContain('NET-0001')
})

test('finals without a text withdraw their partials', async () => {
  const { engine } = arrange({ deaf: true })
  const heard = await openSession(engine)
  heard.session.write(tone(1_000, rate))
  await heard.told('utterance-dropped')
  expect(heard.finals()).toEqual([])
  heard.session.abort()
})

test('metadata at the beginning, warnings and unknown frames change nothing; an error ends it', async () => {
  const { peer, engine, deps } = arrange()
  const heard = await openSession(engine)
  const connection = await peer.connection()
  connection.sendTogether([
    { type: 'Metadata', request_id: 'r' },
    { type: 'Warning', description: 'mind the gap' },
    { type: 'Surprise' },
  ])
  heard.session.write(tone(1_000, rate))
  await heard.told('final')
  expect(deps.lines.join('\n')).toContain('mind the gap')
  connection.send({ type: 'Error', description: 'out of models' })
  await heard.told('failed')
  expect(heard.of('failed')[0]?.error.message).toContain('out of models')
})
