import { describe, expect, test } from 'bun:test'
import { EventLog } from '#responses/event-log.ts'
import type { LogSegment } from '#responses/stored.ts'

/** The frames of a response in memory: what readers get, what is kept and who waits. */
const frames = (number: number) => `${number}`.repeat(8).concat('\n\n')
const segment = (number: number) => ({ first: number, last: number, frames: frames(number) })

/** Frames of ten characters, numbered from 0; 25 characters are kept. */
function createLog(count = 0) {
  const log = new EventLog({ last: -1, charsMax: 25 })
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

/** A reader that records its notifications. */
function attach(log: EventLog, after: number) {
  const notified: (LogSegment | null)[] = []
  const reader = {
    position: after,
    notified,
    changed: (added: LogSegment | null) => void notified.push(added),
    moveTo(position: number) {
      reader.position = position
      log.readerMoved()
    },
    readAll() {
      let text = ''
      for (;;) {
        const step = log.read(reader.position)
        if (step === null || step === 'evicted') return `${text}${step ?? ''}`
        reader.moveTo(step.last)
        text += step.frames
      }
    },
  }
  log.attach(reader)
  return reader
}

describe('a reader', () => {
  test('gets the frames after its position, at once or one by one', () => {
    const log = createLog(2)
    const early = attach(log, -1)
    const late = attach(log, 0)
    expect([early.readAll(), late.readAll()]).toEqual([frames(0) + frames(1), frames(1)])
    expect([log.read(early.position), log.read(7)]).toEqual([null, null])
    log.append(segment(2))
    expect([early.readAll(), late.readAll()]).toEqual([frames(2), frames(2)])
    expect([early.position, log.last]).toEqual([2, 2])
  })

  test('gets the frames of several segments from the middle of one', () => {
    const log = createLog()
    log.append({ first: 0, last: 1, frames: 'a\n\nb\n\n' })
    log.append({ first: 2, last: 3, frames: 'c\n\nd\n\n' })
    expect(log.read(0)).toEqual({ frames: 'b\n\nc\n\nd\n\n', last: 3 })
    expect(log.read(1)).toEqual({ frames: 'c\n\nd\n\n', last: 3 })
    expect(log.read(2)).toEqual({ frames: 'd\n\n', last: 3 })
  })

  test('gets what follows a gap', () => {
    const log = new EventLog({ last: -1, charsMax: 16 * 25 })
    log.append(segment(0))
    log.append(segment(2))
    expect(log.read(1)).toEqual({ frames: frames(2), last: 2 })
    expect(log.read(0)).toEqual({ frames: frames(2), last: 2 })
  })

  test('of a log that continues a stored one must read what came before elsewhere', () => {
    const log = new EventLog({ last: 4, charsMax: 25 })
    expect([log.last, log.read(4), log.read(3)]).toEqual([4, null, 'evicted'])
    log.append(segment(5))
    expect(log.read(4)).toEqual({ frames: frames(5), last: 5 })
    expect(log.read(3)).toBe('evicted')
  })

  test('is notified of new frames and of the end', () => {
    const log = createLog()
    const { notified } = attach(log, -1)
    log.append(segment(0))
    // Storing frames has nothing for readers that have them.
    log.persistedUpTo(0)
    log.end({ kind: 'complete' })
    expect(notified).toEqual([segment(0), null])
  })

  test('of a log that is held gets nothing until frames are persisted, then all', () => {
    const log = new EventLog({ last: -1, charsMax: 25, isHeld: true })
    const reader = attach(log, -1)
    log.append(segment(0))
    log.append(segment(1))
    expect([reader.notified, log.read(-1)]).toEqual([[], null])
    log.persistedUpTo(0)
    expect([reader.notified, reader.readAll()]).toEqual([[null], frames(0) + frames(1)])
  })
})

describe('the database', () => {
  /** Room for segments of two frames. */
  const createLargeLog = () => new EventLog({ last: -1, charsMax: 16 * 25 })

  test('takes the frames since the last time, as one segment that later frames do not extend', () => {
    const log = createLargeLog()
    const given = segment(0)
    for (const each of [given, segment(1), segment(2)]) log.append(each)
    const taken = log.take()
    expect(taken).toEqual({ first: 0, last: 2, frames: frames(0) + frames(1) + frames(2) })
    expect([given, log.take()]).toEqual([segment(0), null])
    log.append(segment(3))
    expect(taken?.last).toBe(2)
    expect(log.take()).toEqual(segment(3))
    expect(log.read(1)).toEqual({ frames: frames(2) + frames(3), last: 3 })
  })

  test('takes no frames that are already persisted', () => {
    const log = createLargeLog()
    log.persistedUpTo(1)
    log.append({ first: 0, last: 1, frames: 'a\n\nb\n\n' })
    expect(log.untakenChars).toBe(0)
    log.append(segment(2))
    expect(log.untakenChars).toBe(frames(2).length)
    expect(log.take()).toEqual(segment(2))
  })
})

test('the first end counts', () => {
  const log = createLog()
  expect(log.ended).toBeNull()
  log.end({ kind: 'complete' })
  log.end({ kind: 'truncated', object: { id: 'x', status: 'failed', output: [] }, closing: '' })
  expect(log.ended).toEqual({ kind: 'complete' })
})

describe('a full log', () => {
  test('keeps what is not stored, and has space when it is', async () => {
    const log = createLog(2)
    expect(log.isFull()).toBe(false)
    await log.space()
    log.append(segment(2))
    expect(log.isFull()).toBe(true)
    const space = log.space()
    expect([await isSettled(space), log.read(-1)]).toEqual([
      false,
      { frames: frames(0) + frames(1) + frames(2), last: 2 },
    ])
    log.persistedUpTo(0)
    expect([await isSettled(space), log.isFull()]).toEqual([true, false])
    expect(log.read(-1)).toBe('evicted')
    expect(attach(log, 0).readAll()).toBe(frames(1) + frames(2))
    // What was stored stays so.
    log.persistedUpTo(2)
    log.persistedUpTo(0)
    log.append(segment(3))
    expect([log.isFull(), log.read(0)]).toEqual([false, 'evicted'])
  })

  test('with exactly the allowed characters is not full', () => {
    const log = new EventLog({ last: -1, charsMax: 20 })
    log.append(segment(0))
    log.append(segment(1))
    expect(log.isFull()).toBe(false)
    log.persistedUpTo(1)
    expect(log.read(-1)).toEqual({ frames: frames(0) + frames(1), last: 1 })
  })

  test('keeps the newest segment, whatever its size', () => {
    const log = createLog()
    log.append({ first: 0, last: 0, frames: 'x'.repeat(100) })
    log.persistedUpTo(0)
    expect(log.read(-1)).toMatchObject({ last: 0 })
    log.append(segment(1))
    log.persistedUpTo(1)
    expect(log.read(-1)).toBe('evicted')
    expect(log.read(0)).toMatchObject({ last: 1 })
  })

  test('that is not stored any more has space when every reader has read or left', async () => {
    const log = createLog(3)
    const [quick, slow] = [attach(log, -1), attach(log, -1)]
    log.keepForReaders()
    expect(log.isFull()).toBe(true)
    const space = log.space()
    quick.readAll()
    expect(await isSettled(space)).toBe(false)
    slow.moveTo(0)
    expect(await isSettled(space)).toBe(true)
    expect(slow.readAll()).toBe(frames(1) + frames(2))
    for (const number of [3, 4, 5]) log.append(segment(number))
    quick.readAll()
    const more = log.space()
    expect([log.isFull(), await isSettled(more), log.readers]).toEqual([true, false, 2])
    log.detach(slow)
    expect([await isSettled(more), log.readers]).toEqual([true, 1])
  })

  test('without readers that is not stored any more keeps nothing', async () => {
    const log = createLog(3)
    const space = log.space()
    log.keepForReaders()
    expect([await isSettled(space), log.isFull()]).toEqual([true, false])
  })
})
