import { describe, expect, test } from 'bun:test'
import { createEventLog, type LogReader } from '#responses/event-log.ts'

/** The frames of a response in memory: what readers get, what is kept and who waits. */
const frames = (number: number) => `${number}`.repeat(8).concat('\n\n')
const segment = (number: number) => ({ first: number, last: number, frames: frames(number) })

/** Frames of ten characters, numbered from 0; 25 characters are kept. */
function createLog(count = 0) {
  const log = createEventLog({ last: -1, charsMax: 25 })
  for (let number = 0; number < count; number++) log.append(segment(number))
  return log
}

async function isSettled(promise: Promise<void>): Promise<boolean> {
  let settled = false
  void promise.then(() => {
    settled = true
  })
  await Bun.sleep(1)
  return settled
}

function readAll(reader: LogReader): string {
  let text = ''
  for (;;) {
    const step = reader.read()
    if (step === null || step === 'evicted') return `${text}${step ?? ''}`
    reader.moveTo(step.last)
    text += step.frames
  }
}

describe('a reader', () => {
  test('gets the frames after its position, at once or one by one', () => {
    const log = createLog(2)
    const early = log.attach(-1)
    const late = log.attach(0)
    expect([readAll(early), readAll(late)]).toEqual([frames(0) + frames(1), frames(1)])
    expect(early.read()).toBeNull()
    expect(log.attach(7).read()).toBeNull()
    log.append(segment(2))
    expect([readAll(early), readAll(late)]).toEqual([frames(2), frames(2)])
    expect([early.position(), log.last()]).toEqual([2, 2])
  })

  test('gets the frames of several segments from the middle of one', () => {
    const log = createLog()
    log.append({ first: 0, last: 1, frames: 'a\n\nb\n\n' })
    log.append({ first: 2, last: 3, frames: 'c\n\nd\n\n' })
    expect(log.attach(0).read()).toEqual({ frames: 'b\n\nc\n\nd\n\n', last: 3 })
    expect(log.attach(1).read()).toEqual({ frames: 'c\n\nd\n\n', last: 3 })
    expect(log.attach(2).read()).toEqual({ frames: 'd\n\n', last: 3 })
  })

  test('of a log that continues a stored one must read what came before elsewhere', () => {
    const log = createEventLog({ last: 4, charsMax: 25 })
    expect([log.last(), log.attach(4).read(), log.attach(3).read()]).toEqual([4, null, 'evicted'])
    log.append(segment(5))
    expect(log.attach(4).read()).toEqual({ frames: frames(5), last: 5 })
    expect(log.attach(3).read()).toBe('evicted')
  })

  test('is woken by a frame, an end and by hand, also before it waits', async () => {
    const log = createLog()
    const reader = log.attach(-1)
    const wakings = [
      () => log.append(segment(0)),
      () => reader.wake(),
      () => log.end({ kind: 'complete' }),
    ]
    for (const wake of wakings) {
      const changed = reader.changed()
      expect(await isSettled(changed)).toBe(false)
      wake()
      expect(await isSettled(changed)).toBe(true)
      wake()
      expect(await isSettled(reader.changed())).toBe(true)
    }
    const changed = reader.changed()
    expect(await isSettled(changed)).toBe(false)
    // Storing frames has nothing for readers that have them.
    log.persistedUpTo(1)
    expect(await isSettled(changed)).toBe(false)
  })
})

test('the first end counts', () => {
  const log = createLog()
  expect(log.ended()).toBeNull()
  log.end({ kind: 'complete' })
  log.end({ kind: 'truncated', object: { id: 'x', status: 'failed', output: [] }, closing: '' })
  expect(log.ended()).toEqual({ kind: 'complete' })
})

describe('a full log', () => {
  test('keeps what is not stored, and has space when it is', async () => {
    const log = createLog(2)
    expect(log.isFull()).toBe(false)
    await log.space()
    log.append(segment(2))
    expect(log.isFull()).toBe(true)
    const space = log.space()
    expect([await isSettled(space), log.attach(-1).read()]).toEqual([
      false,
      { frames: frames(0) + frames(1) + frames(2), last: 2 },
    ])
    log.persistedUpTo(0)
    expect([await isSettled(space), log.isFull()]).toEqual([true, false])
    expect(log.attach(-1).read()).toBe('evicted')
    expect(readAll(log.attach(0))).toBe(frames(1) + frames(2))
    // What was stored stays so.
    log.persistedUpTo(2)
    log.persistedUpTo(0)
    log.append(segment(3))
    expect([log.isFull(), log.attach(0).read()]).toEqual([false, 'evicted'])
  })

  test('with exactly the allowed characters is not full', () => {
    const log = createEventLog({ last: -1, charsMax: 20 })
    log.append(segment(0))
    log.append(segment(1))
    expect(log.isFull()).toBe(false)
    log.persistedUpTo(1)
    expect(log.attach(-1).read()).toEqual({ frames: frames(0) + frames(1), last: 1 })
  })

  test('keeps the newest segment, whatever its size', () => {
    const log = createLog()
    log.append({ first: 0, last: 0, frames: 'x'.repeat(100) })
    log.persistedUpTo(0)
    expect(log.attach(-1).read()).toMatchObject({ last: 0 })
    log.append(segment(1))
    log.persistedUpTo(1)
    expect(log.attach(-1).read()).toBe('evicted')
    expect(log.attach(0).read()).toMatchObject({ last: 1 })
  })

  test('that is not stored any more has space when every reader has read or left', async () => {
    const log = createLog(3)
    const [quick, slow] = [log.attach(-1), log.attach(-1)]
    log.keepForReaders()
    expect(log.isFull()).toBe(true)
    const space = log.space()
    readAll(quick)
    expect(await isSettled(space)).toBe(false)
    slow.moveTo(0)
    expect(await isSettled(space)).toBe(true)
    expect(readAll(slow)).toBe(frames(1) + frames(2))
    for (const number of [3, 4, 5]) log.append(segment(number))
    readAll(quick)
    const more = log.space()
    expect([log.isFull(), await isSettled(more), log.readers()]).toEqual([true, false, 2])
    slow.detach()
    expect([await isSettled(more), log.readers()]).toEqual([true, 1])
  })

  test('without readers that is not stored any more keeps nothing', async () => {
    const log = createLog(3)
    const space = log.space()
    log.keepForReaders()
    expect([await isSettled(space), log.isFull()]).toEqual([true, false])
  })
})
