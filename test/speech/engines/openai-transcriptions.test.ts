import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import { EnginePool } from '#speech/engines/pool.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps, openSession } from '#test/support/engine-session.ts'
import { recordPool } from '#test/support/recognition-recorder.ts'
import {
  startTranscriptionsPeer,
  type TranscriptionsPeer,
  type TranscriptionsScript,
} from '#test/support/scripted-engines/transcriptions-peer.ts'
import { speak } from '#test/support/spoken-numbers.ts'

const peers: TranscriptionsPeer[] = []
const rate = 16_000

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

function arrange(script: TranscriptionsScript = {}, given: Partial<EngineConfig> = {}) {
  const peer = startTranscriptionsPeer(script)
  peers.push(peer)
  const deps = engineDeps()
  const config = engineConfig({ kind: 'openai-transcriptions', url: peer.url, ...given })
  const engine = createEngine(config, deps)
  return { peer, deps, engine, pool: new EnginePool([engine], deps.log) }
}

const texts = (words: readonly { readonly word: string }[]) => words.map(({ word }) => word)

test('ten minutes with pauses, and speech without any, lose and repeat no word', async () => {
  const { peer, pool } = arrange()
  const pauses = Array.from({ length: 205 }, (_, at) => ({
    silenceMs: 500 + (at % 7) * 100,
    words: 3 + (at % 30),
  }))
  // Two minutes in which no pause ends a segment.
  const unbroken = Array.from({ length: 30 }, () => ({ silenceMs: 150, words: 38 }))
  const speech = speak([...pauses, { silenceMs: 700, words: 3 }, ...unbroken], 400)
  expect(speech.samples.length / rate).toBeGreaterThanOrEqual(600)
  const recorder = await recordPool(pool, {})
  await recorder.write(speech.samples)
  const { type, stats } = await recorder.end()
  expect(type).toBe('ended')
  expect(recorder.words()).toEqual(texts(speech.words))
  expect(stats).toMatchObject({ untranscribedMs: 0, engine: { rollovers: 1 } })
  // Memory: no request has more than the longest segment and its context.
  expect(Math.max(...peer.requests.map(({ audioMs }) => audioMs))).toBeLessThanOrEqual(21_000)
  const times = recorder.finals().flatMap(({ words }) => words)
  for (const [at, { startMs }] of times.entries()) {
    expect(Math.abs(startMs - (speech.words[at]?.startMs ?? 0))).toBeLessThanOrEqual(100)
  }
})

test('partials decode the open segment again, and the final follows the pause', async () => {
  const { engine } = arrange()
  const { session, of, waitFor, finals } = await openSession(engine)
  const { samples } = speak([{ silenceMs: 300, words: 25 }])
  session.write(samples)
  await waitFor('partial')
  expect(of('partial')[0]?.text).toStartWith('1 2 3')
  session.write(new Int16Array(rate))
  await waitFor('final')
  expect(finals()).toEqual([Array.from({ length: 25 }, (_, at) => at + 1).join(' ')])
  expect(of('final')[0]?.speechFinal).toBe(true)
  session.abort()
})

test('requests carry model, language, key, and the text before as prompt', async () => {
  const { peer, engine } = arrange({}, { key: 'secret', model: 'large', features: ['words'] })
  const { session, waitFor } = await openSession(engine, {
    language: 'de',
    vocabulary: ['Sluice'],
  })
  session.write(
    speak(
      [
        { silenceMs: 300, words: 4 },
        { silenceMs: 900, words: 4 },
      ],
      900,
    ).samples,
  )
  await waitFor('final', 2)
  session.abort()
  expect(peer.requests.map(({ authorization }) => authorization)).toEqual([
    'Bearer secret',
    'Bearer secret',
  ])
  expect(peer.requests[1]?.fields).toMatchObject({
    model: 'large',
    language: 'de',
    prompt: 'Sluice. 1 2 3 4',
  })
})

test('a server without word times is asked for plain JSON; nothing is lost or repeated', async () => {
  const { peer, pool } = arrange({ lacksWords: true })
  const speech = speak(
    [
      { silenceMs: 500, words: 20 },
      { silenceMs: 800, words: 30 },
    ],
    400,
  )
  const recorder = await recordPool(pool, {})
  await recorder.write(speech.samples)
  const { stats } = await recorder.end()
  expect(recorder.words()).toEqual(texts(speech.words))
  expect(stats.untranscribedMs).toBe(0)
  const refused = peer.requests.filter(({ fields }) => fields['response_format'] !== 'json')
  expect(refused.length).toBeLessThanOrEqual(2)
})

test('a busy or failing server is asked again', async () => {
  const failures = [
    new Response('busy', { status: 503, headers: { 'retry-after': '0' } }),
    new Response('not json'),
    new Response('down', { status: 500 }),
  ]
  const { peer, deps, engine } = arrange(
    { answer: (index) => failures[index] ?? null },
    { features: [] },
  )
  const { session, waitFor, finals } = await openSession(engine)
  session.write(speak([{ silenceMs: 300, words: 3 }], 800).samples)
  await waitFor('final')
  expect(finals()).toEqual(['1 2 3'])
  expect(peer.requests).toHaveLength(4)
  expect(deps.lines.filter((line) => line.includes('retrying'))).toHaveLength(3)
  session.abort()
})

test('a server that goes on failing fails the session without the key in the log', async () => {
  const { deps, engine } = arrange(
    { answer: () => new Response('key sk-1 is wrong', { status: 401 }) },
    { key: 'sk-1' },
  )
  const { session, of, waitFor } = await openSession(engine)
  session.write(speak([{ silenceMs: 300, words: 3 }], 800).samples)
  await waitFor('failed')
  expect(of('failed')[0]?.error.kind).toBe('refused')
  expect(of('failed')[0]?.error.message).not.toContain('sk-1')
  expect(deps.lines.join('')).not.toContain('sk-1')
})

test('a slow server holds the audio back', async () => {
  const gate = Promise.withResolvers<null>()
  const { peer, engine } = arrange({ answer: () => gate.promise }, { features: [] })
  const { session, of, waitFor } = await openSession(engine)
  const utterances = Array.from({ length: 6 }, () => ({ silenceMs: 900, words: 3 }))
  const { samples } = speak(utterances, 900)
  for (let at = 0; at < samples.length; at += 1_600) session.write(samples.subarray(at, at + 1_600))
  await waitFor('progress')
  const heldAt = of('progress').at(-1)?.processedMs ?? 0
  expect(heldAt).toBeLessThan(samples.length / 16)
  expect(peer.requests).toHaveLength(1)
  gate.resolve(null)
  await waitFor('final', 6)
  await waitFor('progress', of('progress').length)
  expect(of('progress').at(-1)?.processedMs).toBe(samples.length / 16)
  session.abort()
})

test('a server that cannot be reached, or refuses the key, is not opened', async () => {
  const { engine, peer } = arrange()
  await peer.stop()
  await expect(openSession(engine)).rejects.toMatchObject({ kind: 'unreachable' })
})
