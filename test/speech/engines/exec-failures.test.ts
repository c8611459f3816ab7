import { afterEach, describe, expect, test } from 'bun:test'
import type { EngineErrorKind } from '#speech/engine.ts'
import { openSession, tone } from '#test/support/engine-session.ts'
import { feedAudio } from '#test/support/feed-audio.ts'
import { killProcess } from '#test/support/process.ts'
import { closeStubs, stubEngine } from '#test/support/stub-program/engine.ts'
import type { StubScript } from '#test/support/stub-program/script.ts'

const rate = 16_000
const spoken = tone(2_000, rate)

afterEach(closeStubs)

describe('a session fails, once and with its reason, when its program', () => {
  const ways: [string, Partial<StubScript>, EngineErrorKind, RegExp][] = [
    ['crashes', { breaksBy: 'crash' }, 'broken', /ended with code 3 in the midst/],
    ['leaves without a word', { breaksBy: 'exit' }, 'broken', /ended with code 0 in the midst/],
    ['says that it is done too early', { breaksBy: 'done' }, 'broken', /done before its audio/],
    ['prints what is not JSON', { breaksBy: 'garbage' }, 'broken', /no message: Segmentation/],
    ['prints what is no message', { breaksBy: 'malformed' }, 'broken', /no message: .+soon/],
    ['prints a line without end', { breaksBy: 'endless-line' }, 'broken', /line without end/],
    ['reaches a limit of its own', { breaksBy: 'limit' }, 'limit', /an hour is enough/],
    ['gives up for reasons of its own', { breaksBy: 'error' }, 'broken', /no memory is left/],
  ]
  test.each(ways)('%s', async (_name, script, kind, message) => {
    const { engine } = stubEngine({ breaksAtMs: 1_000, ...script })
    const heard = await openSession(engine)
    await feedAudio(heard, spoken)
    await heard.told('failed')

    const [failure] = heard.of('failed')
    expect(failure?.error.kind).toBe(kind)
    expect(failure?.error.message).toMatch(message)
    expect(heard.events.at(-1)?.type).toBe('failed')
    heard.session.write(spoken)
    heard.session.finalize()
    heard.session.end()
    heard.session.abort()
    await engine.close()
    expect(heard.of('failed')).toHaveLength(1)
    expect(heard.of('ended')).toEqual([])
  })

  test('is killed from outside', async () => {
    const { engine, lines } = stubEngine({ errorLines: 1 })
    const heard = await openSession(engine)
    await feedAudio(heard, spoken)
    killProcess(pidIn(lines))
    await heard.told('failed')
    expect(heard.of('failed')[0]?.error.message).toContain('was killed in the midst')
  })

  test('crashes over what comes last', async () => {
    const heard = await openSession(stubEngine({ atEnd: 'crash' }).engine)
    await feedAudio(heard, spoken)
    heard.session.end()
    await heard.told('failed')
    expect(heard.finals()).toEqual(['utterance 1'])
    expect(heard.of('failed')[0]?.error.message).toContain('ended with code 5 before it was done')
  })
})

test('a program that ends well after its audio has ended need not say that it is done', async () => {
  const heard = await openSession(stubEngine({ atEnd: 'exit' }).engine)
  await feedAudio(heard, spoken)
  heard.session.end()
  await heard.told('ended')
  expect(heard.finals()).toEqual(['utterance 1'])
})

describe('no session is opened when the program', () => {
  const ways: [string, Partial<StubScript>, EngineErrorKind, RegExp][] = [
    ['ends before it is ready', { atStart: 'exit' }, 'unreachable', /code 4 before it was ready/],
    ['is not ready in time', { atStart: 'silence' }, 'unreachable', /not ready within 400 ms/],
    ['refuses', { atStart: 'refuse' }, 'refused', /not this one/],
  ]
  test.each(ways)('%s', async (_name, script, kind, message) => {
    const { engine } = stubEngine(script, { openMs: 400 })
    const opening = openSession(engine)
    expect(opening).rejects.toMatchObject({ name: 'EngineError', kind })
    expect(opening).rejects.toThrow(message)
    await opening.catch(() => {})
  })

  test('does not exist', async () => {
    const { engine } = stubEngine({}, { command: ['no-such-recogniser'] })
    const opening = openSession(engine)
    expect(opening).rejects.toMatchObject({ kind: 'unreachable' })
    await opening.catch(() => {})
  })

  test('is not waited for any more', async () => {
    const { engine } = stubEngine({ atStart: 'silence' })
    const asked = new AbortController()
    const opening = openSession(engine, { signal: asked.signal })
    asked.abort()
    expect(opening).rejects.toMatchObject({ kind: 'unreachable' })
    await opening.catch(() => {})
    const again = openSession(engine, { signal: asked.signal })
    expect(again).rejects.toMatchObject({ kind: 'unreachable' })
    await again.catch(() => {})
  })
})

function pidIn(lines: readonly string[]): number {
  return Number(JSON.parse(lines[0] ?? '{}').pid)
}
