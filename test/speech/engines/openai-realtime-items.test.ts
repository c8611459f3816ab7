import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import type { JsonObject } from '#lib/json.ts'
import { createOpenAiRealtimeEngine } from '#speech/engines/openai-realtime/engine.ts'
import { engineConfig, engineDeps, openSession, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import {
  completedOf,
  deltaOf,
  errorOf,
  type RealtimePeer,
  type RealtimeScript,
  startRealtimePeer,
} from '#test/support/scripted-engines/realtime-peer.ts'

const peers: RealtimePeer[] = []
const rate = 24_000

afterEach(async () => {
  await Promise.all(peers.splice(0).map((peer) => peer.stop()))
})

function arrange(script: RealtimeScript = {}, given: Partial<EngineConfig> = {}) {
  const peer = startRealtimePeer(script)
  peers.push(peer)
  const deps = engineDeps()
  const config = engineConfig({ kind: 'openai-realtime', url: peer.url, ...given })
  return { peer, deps, engine: createOpenAiRealtimeEngine(config, deps) }
}

/** A session whose server says what the test lets it say. */
async function speakTo(frames: readonly JsonObject[]) {
  const arranged = arrange({ manual: true })
  const heard = await openSession(arranged.engine)
  const connection = await arranged.peer.connection()
  connection.sendTogether(frames)
  return { ...arranged, heard, connection }
}

function committed(number: number, previous = number - 1): JsonObject {
  return {
    type: 'input_audio_buffer.committed',
    item_id: `item_${number}`,
    previous_item_id: previous === 0 ? null : `item_${previous}`,
  }
}

function started(number: number, audio_start_ms: number): JsonObject {
  return { type: 'input_audio_buffer.speech_started', audio_start_ms, item_id: `item_${number}` }
}

test('completions that come in another order are told in the order of the commits', async () => {
  const { heard } = await speakTo([
    committed(1),
    committed(2),
    committed(3),
    deltaOf(2, 'two'),
    completedOf(3, 'three'),
    deltaOf(1, 'on'),
    completedOf(2, 'two!'),
    deltaOf(1, 'e'),
    completedOf(1, 'one!'),
  ])
  await heard.told('final', 3)
  const texts = heard.events.map((event) => [event.type, 'text' in event ? event.text : ''])
  expect(texts).toEqual([
    ['partial', 'on'],
    ['partial', 'one'],
    ['final', 'one!'],
    ['final', 'two!'],
    ['final', 'three'],
  ])
  heard.session.abort()
})

test('a commit that names the item before it is put behind that one', async () => {
  const { heard } = await speakTo([
    committed(1),
    committed(3, 2),
    committed(2, 1),
    completedOf(3, 'three'),
    completedOf(2, 'two'),
    completedOf(1, 'one'),
  ])
  await heard.told('final', 3)
  expect(heard.finals()).toEqual(['one', 'two', 'three'])
  heard.session.abort()
})

test('deltas of what is still being said are shown, and late words about a told item are not', async () => {
  const { heard } = await speakTo([
    started(1, 300),
    deltaOf(1, 'still'),
    committed(1),
    completedOf(1, 'still here'),
    deltaOf(1, 'ghost'),
    completedOf(1, 'ghost'),
    started(2, 900),
    deltaOf(2, ' next'),
  ])
  await heard.told('partial', 2)
  expect(heard.of('partial')).toEqual([
    { type: 'partial', text: 'still', startMs: 300, endMs: null },
    { type: 'partial', text: 'next', startMs: 900, endMs: null },
  ])
  expect(heard.finals()).toEqual(['still here'])
  heard.session.abort()
})

test('a server that never speaks of commits is told in the order of its turns', async () => {
  const { heard } = await speakTo([
    started(1, 0),
    started(2, 900),
    completedOf(2, 'two'),
    completedOf(1, 'one'),
  ])
  await heard.told('final', 2)
  expect(heard.finals()).toEqual(['one', 'two'])
  heard.session.abort()
})

test('an item without a text withdraws its partials', async () => {
  const { heard } = await speakTo([committed(1), deltaOf(1, 'hm'), completedOf(1, '  ')])
  await heard.told('utterance-dropped')
  expect(heard.events.map(({ type }) => type)).toEqual(['partial', 'utterance-dropped'])
  heard.session.abort()
})

test('the mean probability of the tokens is the confidence, where it is told', async () => {
  const logprobs = [{ logprob: Math.log(0.5) }, { logprob: Math.log(0.5) }]
  const { heard } = await speakTo([committed(1), { ...completedOf(1, 'one'), logprobs }])
  await heard.told('final')
  expect(heard.of('final')[0]?.confidence).toBeCloseTo(0.5)
  heard.session.abort()
})

test('an item that fails does not hold up the next, and the log says why', async () => {
  const error = { type: 'server_error', code: 'oops', message: 'transcription broke' }
  const failed = {
    type: 'conversation.item.input_audio_transcription.failed',
    item_id: 'item_1',
    error,
  }
  const { heard, deps } = await speakTo([committed(1), committed(2), completedOf(2, 'two'), failed])
  await heard.told('final')
  expect(heard.events.map(({ type }) => type)).toEqual(['utterance-dropped', 'final'])
  expect(deps.lines.join('\n')).toContain('transcription broke')
  heard.session.abort()
})

test('a server whose items fail one after the other is given up', async () => {
  const fail = (number: number) => ({
    type: 'conversation.item.input_audio_transcription.failed',
    item_id: `item_${number}`,
    error: { message: 'no' },
  })
  const { heard } = await speakTo([1, 2, 3].flatMap((n) => [committed(n), fail(n)]))
  await heard.told('failed')
  expect(heard.of('failed')[0]?.error.kind).toBe('broken')
})

test('an error that is none of the session is noted, and the session goes on', async () => {
  const { heard, deps } = await speakTo([
    errorOf('invalid_value', 'I did not like that', 'type'),
    { type: 'rate_limits.updated' },
    committed(1),
    completedOf(1, 'one'),
  ])
  await heard.told('final')
  expect(deps.lines.join('\n')).toContain('I did not like that')
  heard.session.abort()
})

for (const [code, kind] of [
  ['session_expired', 'limit'],
  ['rate_limit_exceeded', 'busy'],
  ['insufficient_quota', 'refused'],
] as const) {
  test(`the error ${code} ends the session as ${kind}`, async () => {
    const { heard } = await speakTo([errorOf(code, 'over', null)])
    await heard.told('failed')
    expect(heard.of('failed')[0]?.error.kind).toBe(kind)
  })
}

test('an item without an id is a broken server, since it cannot be put in order', async () => {
  const { heard } = await speakTo([{ ...completedOf(1, 'one'), item_id: null }])
  await heard.told('failed')
  expect(heard.of('failed')[0]?.error.kind).toBe('broken')
})

test('an item that is never answered ends the session before the others pile up', async () => {
  const numbers = Array.from({ length: 70 }, (_, at) => at + 1)
  const { heard } = await speakTo(
    numbers.flatMap((n) => (n === 1 ? [committed(n)] : [committed(n), completedOf(n, 'later')])),
  )
  await heard.told('failed')
  expect(heard.of('failed')[0]?.error.kind).toBe('broken')
  expect(heard.finals()).toEqual([])
})

test('a session that the server refuses to configure does not open', async () => {
  const sessionError = errorOf('model_not_found', 'there is no such model', 'session.model')
  const { engine } = arrange({ sessionError })
  await expect(openSession(engine)).rejects.toMatchObject({ kind: 'refused' })

  const other = arrange({ sessionError: errorOf('rate_limit_exceeded', 'too many', null) })
  await expect(openSession(other.engine)).rejects.toMatchObject({ kind: 'busy' })
})

test('a server that never answers the configuration is not waited for', async () => {
  const { peer, engine } = arrange({ neverReady: true }, { openMs: 60 })
  await expect(openSession(engine)).rejects.toMatchObject({ kind: 'unreachable' })
  const connection = await peer.connection()
  await eventually('the connection is gone', () => connection.closed !== null)
})

test('audio after a final keeps the estimate from running backwards', async () => {
  const { heard, connection } = await speakTo([])
  heard.session.write(tone(1_000, rate))
  connection.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 900, item_id: 'a' })
  await eventually('all is reckoned', () => heard.of('progress').at(-1)?.processedMs === 1_000)
  connection.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 50, item_id: 'b' })
  heard.session.write(tone(100, rate))
  await eventually('and goes on', () => heard.of('progress').at(-1)?.processedMs === 1_100)
  heard.session.abort()
})
