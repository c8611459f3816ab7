import { afterEach, expect, test } from 'bun:test'
import type { EngineConfig } from '#config/schema.ts'
import type { JsonObject } from '#lib/json.ts'
import { createEngine } from '#speech/engines/registry.ts'
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
  return { peer, deps, engine: createEngine(config, deps) }
}

/** A session whose server sends the frames of the test. */
async function speakTo(frames: readonly JsonObject[]) {
  const arranged = arrange({ manual: true })
  const recorder = await openSession(arranged.engine)
  const connection = await arranged.peer.connection()
  connection.sendTogether(frames)
  return { ...arranged, recorder, connection }
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

test('out-of-order completions are emitted in commit order', async () => {
  const { recorder } = await speakTo([
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
  await recorder.waitFor('final', 3)
  const texts = recorder.events.map((event) => [event.type, 'text' in event ? event.text : ''])
  expect(texts).toEqual([
    ['partial', 'on'],
    ['partial', 'one'],
    ['final', 'one!'],
    ['final', 'two!'],
    ['final', 'three'],
  ])
  recorder.session.abort()
})

test('a commit is ordered after its previous_item_id', async () => {
  const { recorder } = await speakTo([
    committed(1),
    committed(3, 2),
    committed(2, 1),
    completedOf(3, 'three'),
    completedOf(2, 'two'),
    completedOf(1, 'one'),
  ])
  await recorder.waitFor('final', 3)
  expect(recorder.finals()).toEqual(['one', 'two', 'three'])
  recorder.session.abort()
})

test('deltas of the open item are emitted; late frames of a completed item are ignored', async () => {
  const { recorder } = await speakTo([
    started(1, 300),
    deltaOf(1, 'still'),
    committed(1),
    completedOf(1, 'still here'),
    deltaOf(1, 'ghost'),
    completedOf(1, 'ghost'),
    started(2, 900),
    deltaOf(2, ' next'),
  ])
  await recorder.waitFor('partial', 2)
  expect(recorder.of('partial')).toEqual([
    { type: 'partial', text: 'still', startMs: 300, endMs: null },
    { type: 'partial', text: 'next', startMs: 900, endMs: null },
  ])
  expect(recorder.finals()).toEqual(['still here'])
  recorder.session.abort()
})

test('without commits, items are emitted in the order of their turns', async () => {
  const { recorder } = await speakTo([
    started(1, 0),
    started(2, 900),
    completedOf(2, 'two'),
    completedOf(1, 'one'),
  ])
  await recorder.waitFor('final', 2)
  expect(recorder.finals()).toEqual(['one', 'two'])
  recorder.session.abort()
})

test('an item without text withdraws its partials', async () => {
  const { recorder } = await speakTo([committed(1), deltaOf(1, 'hm'), completedOf(1, '  ')])
  await recorder.waitFor('utterance-dropped')
  expect(recorder.events.map(({ type }) => type)).toEqual(['partial', 'utterance-dropped'])
  recorder.session.abort()
})

test('the confidence is the mean token probability, if reported', async () => {
  const logprobs = [{ logprob: Math.log(0.5) }, { logprob: Math.log(0.5) }]
  const { recorder } = await speakTo([committed(1), { ...completedOf(1, 'one'), logprobs }])
  await recorder.waitFor('final')
  expect(recorder.of('final')[0]?.confidence).toBeCloseTo(0.5)
  recorder.session.abort()
})

test('a failed item does not block the next and is logged', async () => {
  const error = { type: 'server_error', code: 'oops', message: 'transcription broke' }
  const failed = {
    type: 'conversation.item.input_audio_transcription.failed',
    item_id: 'item_1',
    error,
  }
  const { recorder, deps } = await speakTo([
    committed(1),
    committed(2),
    completedOf(2, 'two'),
    failed,
  ])
  await recorder.waitFor('final')
  expect(recorder.events.map(({ type }) => type)).toEqual(['utterance-dropped', 'final'])
  expect(deps.lines.join('\n')).toContain('transcription broke')
  recorder.session.abort()
})

test('consecutive item failures fail the session', async () => {
  const fail = (number: number) => ({
    type: 'conversation.item.input_audio_transcription.failed',
    item_id: `item_${number}`,
    error: { message: 'no' },
  })
  const { recorder } = await speakTo([1, 2, 3].flatMap((n) => [committed(n), fail(n)]))
  await recorder.waitFor('failed')
  expect(recorder.of('failed')[0]?.error.kind).toBe('broken')
})

test('a non-fatal error is logged and the session continues', async () => {
  const { recorder, deps } = await speakTo([
    errorOf('invalid_value', 'I did not like that', 'type'),
    { type: 'rate_limits.updated' },
    committed(1),
    completedOf(1, 'one'),
  ])
  await recorder.waitFor('final')
  expect(deps.lines.join('\n')).toContain('I did not like that')
  recorder.session.abort()
})

for (const [code, kind] of [
  ['session_expired', 'limit'],
  ['rate_limit_exceeded', 'busy'],
  ['insufficient_quota', 'refused'],
] as const) {
  test(`error ${code} fails the session as ${kind}`, async () => {
    const { recorder } = await speakTo([errorOf(code, 'over', null)])
    await recorder.waitFor('failed')
    expect(recorder.of('failed')[0]?.error.kind).toBe(kind)
  })
}

test('an item without an id fails the session, because it cannot be ordered', async () => {
  const { recorder } = await speakTo([{ ...completedOf(1, 'one'), item_id: null }])
  await recorder.waitFor('failed')
  expect(recorder.of('failed')[0]?.error.kind).toBe('broken')
})

test('an item that never completes fails the session before others accumulate', async () => {
  const numbers = Array.from({ length: 70 }, (_, at) => at + 1)
  const { recorder } = await speakTo(
    numbers.flatMap((n) => (n === 1 ? [committed(n)] : [committed(n), completedOf(n, 'later')])),
  )
  await recorder.waitFor('failed')
  expect(recorder.of('failed')[0]?.error.kind).toBe('broken')
  expect(recorder.finals()).toEqual([])
})

test('a session whose configuration is refused does not open', async () => {
  const sessionError = errorOf('model_not_found', 'there is no such model', 'session.model')
  const { engine } = arrange({ sessionError })
  await expect(openSession(engine)).rejects.toMatchObject({ kind: 'refused' })

  const other = arrange({ sessionError: errorOf('rate_limit_exceeded', 'too many', null) })
  await expect(openSession(other.engine)).rejects.toMatchObject({ kind: 'busy' })
})

test('an unanswered configuration times out', async () => {
  const { peer, engine } = arrange({ neverReady: true }, { openMs: 60 })
  await expect(openSession(engine)).rejects.toMatchObject({ kind: 'unreachable' })
  const connection = await peer.connection()
  await eventually('the connection is closed', () => connection.closed !== null)
})

test('estimated progress never decreases', async () => {
  const { recorder, connection } = await speakTo([])
  recorder.session.write(tone(1_000, rate))
  connection.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 900, item_id: 'a' })
  await eventually(
    'all audio is counted as processed',
    () => recorder.of('progress').at(-1)?.processedMs === 1_000,
  )
  connection.send({ type: 'input_audio_buffer.speech_stopped', audio_end_ms: 50, item_id: 'b' })
  recorder.session.write(tone(100, rate))
  await eventually(
    'progress continues',
    () => recorder.of('progress').at(-1)?.processedMs === 1_100,
  )
  recorder.session.abort()
})

test('a commit that a slow server answers late is awaited, by finalize and by end', async () => {
  for (const request of ['finalize', 'end'] as const) {
    const { peer, engine } = arrange({ answersCommits: false })
    const recorder = await openSession(engine)
    recorder.session.write(tone(500, rate))
    recorder.session[request]()
    const connection = await peer.connection()
    await eventually(
      'the commit was sent',
      () => connection.texts.at(-1)?.includes('commit') === true,
    )
    // Longer than for an answer that never comes because the server closed the item itself.
    await Bun.sleep(2_200)
    connection.sendTogether([committed(1), completedOf(1, 'late')])
    const answer = request === 'finalize' ? 'finalized' : 'ended'
    await recorder.waitFor(answer)
    const kinds = recorder.events.map(({ type }) => type).filter((type) => type !== 'progress')
    expect(kinds.slice(kinds.indexOf('final'))).toEqual(['final', answer])
    expect(recorder.finals()).toEqual(['late'])
    recorder.session.abort()
  }
})

test('a commit that closes nothing because the server has detected the pause is given up', async () => {
  const { peer, engine } = arrange({ answersCommits: false })
  const recorder = await openSession(engine)
  recorder.session.write(tone(500, rate))
  recorder.session.finalize()
  const connection = await peer.connection()
  await eventually(
    'the commit was sent',
    () => connection.texts.at(-1)?.includes('commit') === true,
  )
  const stopped = { audio_end_ms: 500, item_id: 'item_1' }
  connection.send({ type: 'input_audio_buffer.speech_stopped', ...stopped })
  connection.sendTogether([committed(1), completedOf(1, 'own')])
  await recorder.waitFor('finalized')
  expect(recorder.finals()).toEqual(['own'])
  recorder.session.abort()
})
