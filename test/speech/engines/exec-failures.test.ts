import { afterEach, describe, expect, test } from 'bun:test'
import type { EngineErrorKind } from '#speech/engine.ts'
import { openSession, tone } from '#test/support/engine-session.ts'
import { killProcess } from '#test/support/process.ts'
import { closeStubs, stubEngine } from '#test/support/stub-program/engine.ts'
import type { StubScript } from '#test/support/stub-program/script.ts'
import { writeAudio } from '#test/support/write-audio.ts'

const rate = 16_000
const spoken = tone(2_000, rate)

afterEach(closeStubs)

describe('a session fails once, with its cause, when its program', () => {
  const ways: [string, Partial<StubScript>, EngineErrorKind, RegExp][] = [
    ['crashes', { breaksBy: 'crash' }, 'broken', /exited with code 3 before the end of its audio/],
    [
      'exits without output',
      { breaksBy: 'exit' },
      'broken',
      /exited with code 0 before the end of its audio/,
    ],
    ['reports done too early', { breaksBy: 'done' }, 'broken', /done before the end of its audio/],
    ['prints invalid JSON', { breaksBy: 'garbage' }, 'broken', /invalid message: Segmentation/],
    ['prints an invalid message', { breaksBy: 'malformed' }, 'broken', /invalid message: .+soon/],
    ['prints a line that is too long', { breaksBy: 'endless-line' }, 'broken', /too long a line/],
    ['reaches its own limit', { breaksBy: 'limit' }, 'limit', /an hour is enough/],
    ['reports an error', { breaksBy: 'error' }, 'broken', /no memory is left/],
  ]
  test.each(ways)('%s', async (_name, script, kind, message) => {
    const { engine } = stubEngine({ breaksAtMs: 1_000, ...script })
    const recorder = await openSession(engine)
    await writeAudio(recorder, spoken)
    await recorder.waitFor('failed')

    const [failure] = recorder.of('failed')
    expect(failure?.error.kind).toBe(kind)
    expect(failure?.error.message).toMatch(message)
    expect(recorder.events.at(-1)?.type).toBe('failed')
    recorder.session.write(spoken)
    recorder.session.finalize()
    recorder.session.end()
    recorder.session.abort()
    await engine.close()
    expect(recorder.of('failed')).toHaveLength(1)
    expect(recorder.of('ended')).toEqual([])
  })

  test('is killed from outside', async () => {
    const { engine, lines } = stubEngine({ errorLines: 1 })
    const recorder = await openSession(engine)
    await writeAudio(recorder, spoken)
    killProcess(pidIn(lines))
    await recorder.waitFor('failed')
    expect(recorder.of('failed')[0]?.error.message).toContain(
      'was killed before the end of its audio',
    )
  })

  test('crashes after the end of the audio', async () => {
    const recorder = await openSession(stubEngine({ atEnd: 'crash' }).engine)
    await writeAudio(recorder, spoken)
    recorder.session.end()
    await recorder.waitFor('failed')
    expect(recorder.finals()).toEqual(['utterance 1'])
    expect(recorder.of('failed')[0]?.error.message).toContain(
      'exited with code 5 before it was done',
    )
  })
})

test('a program that exits successfully after its audio need not report done', async () => {
  const recorder = await openSession(stubEngine({ atEnd: 'exit' }).engine)
  await writeAudio(recorder, spoken)
  recorder.session.end()
  await recorder.waitFor('ended')
  expect(recorder.finals()).toEqual(['utterance 1'])
})

describe('no session is opened when the program', () => {
  const ways: [string, Partial<StubScript>, EngineErrorKind, RegExp][] = [
    ['exits before it is ready', { atStart: 'exit' }, 'unreachable', /code 4 before it was ready/],
    ['is not ready in time', { atStart: 'silence' }, 'unreachable', /not ready within 400 ms/],
    ['reports refused', { atStart: 'refuse' }, 'refused', /not this one/],
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

  test('is still starting when opening is cancelled', async () => {
    const { engine } = stubEngine({ atStart: 'silence' })
    const controller = new AbortController()
    const opening = openSession(engine, { signal: controller.signal })
    controller.abort()
    expect(opening).rejects.toMatchObject({ kind: 'unreachable' })
    await opening.catch(() => {})
    const again = openSession(engine, { signal: controller.signal })
    expect(again).rejects.toMatchObject({ kind: 'unreachable' })
    await again.catch(() => {})
  })
})

function pidIn(lines: readonly string[]): number {
  return Number(JSON.parse(lines[0] ?? '{}').pid)
}
