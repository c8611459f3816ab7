import { expect, test } from 'bun:test'
import { createOutbox } from '#surfaces/responses/socket/outbox.ts'
import { eventually } from '#test/support/eventually.ts'

/** A client that reads nothing until its socket buffer is full. */
function openWire() {
  const wire = {
    sent: [] as string[],
    bufferedBytes: 0,
    isOver: false,
    isPaused: false,
    getBufferedAmount: () => wire.bufferedBytes,
    sendText(text: string) {
      wire.sent.push(text)
      wire.bufferedBytes += text.length
      return -1
    },
    cork: <T>(write: (wire: never) => T) => write(undefined as never),
    terminate() {
      wire.isOver = true
    },
    close() {},
    pause() {},
    resume() {},
  }
  return wire
}

const exchange = { addBytesOut() {} }

test('sending continues if the buffer was flushed without a drain event', async () => {
  const wire = openWire()
  const outbox = createOutbox(wire, { readerStallMs: 60_000, exchange })
  const written = outbox.write(['one', 'two'], null)
  expect(wire.sent).toEqual(['one'])
  wire.bufferedBytes = 0
  await eventually('the next one is sent', () => wire.sent.length === 2)
  wire.bufferedBytes = 0
  expect(await written).toBe(1)
  outbox.closed()
})

test('a client that reads nothing is disconnected', async () => {
  const wire = openWire()
  const outbox = createOutbox(wire, { readerStallMs: 20, exchange })
  const written = outbox.write(['one', 'two'], null)
  await eventually('it is let go', () => wire.isOver)
  outbox.closed()
  expect(await written).toBe(0)
  expect(wire.sent).toEqual(['one'])
})

test('responses that wait send one frame each in turn, after what belongs to none', async () => {
  const wire = openWire()
  const outbox = createOutbox(wire, { readerStallMs: 60_000, exchange })
  let ownBytes = 0
  const own = {
    addBytesOut(bytes: number) {
      ownBytes += bytes
    },
  }
  const written = ['a', 'b', 'c'].map((lane) =>
    outbox.write([`${lane}1`, `${lane}2`, `${lane}3`], lane === 'b' ? own : null),
  )
  outbox.push('refusal')
  for (let drains = 0; drains < 12; drains++) {
    wire.bufferedBytes = 0
    outbox.drained()
  }
  expect(wire.sent).toEqual(['a1', 'refusal', 'a2', 'b1', 'c1', 'a3', 'b2', 'c2', 'b3', 'c3'])
  expect(await Promise.all(written)).toEqual([1, 1, 1])
  expect(ownBytes).toBe(6)
  const late = outbox.write(['d1', 'd2'], null)
  outbox.closed()
  expect(await late).toBe(0)
})
